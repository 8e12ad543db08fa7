/** The messages with which commands end. */
import { existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import kafkajs from 'kafkajs'
import { expect, test } from 'vitest'
import { CommandError, messageOf } from '../../tools/failures.ts'

test.runIf(existsSync('/dev/full'))('an error of an open file has its code, and is no defect', async () => {
  await using full = await open('/dev/full', 'w')
  const error = await full.writeFile('text').catch((caught: unknown) => caught)
  expect(messageOf(error)).toBe('a file cannot be used: ENOSPC')
})

test('an error of a connection is not taken for one of a file', () => {
  const error = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' })
  expect(messageOf(error)).toMatch(/^a defect: Error at .*failures\.test\.ts:/)
})

test('an error of Kafka says whether it answers, also after the last attempt of the client', () => {
  const gone = new kafkajs.KafkaJSConnectionError('connect ECONNREFUSED')
  const refused = new kafkajs.KafkaJSProtocolError(
    Object.assign(new Error('a record'), { type: 'NOT_ENOUGH_REPLICAS' }),
  )
  const last = (error: Error) => new kafkajs.KafkaJSNumberOfRetriesExceeded(error, { retryCount: 5, retryTime: 1 })
  for (const [error, message] of [
    [gone, 'Kafka does not answer (KafkaJSConnectionError): look at KAFKA_BROKERS'],
    [refused, 'Kafka answers NOT_ENOUGH_REPLICAS'],
  ] as const) {
    expect(messageOf(error)).toContain(message)
    expect(messageOf(last(error))).toBe(messageOf(error))
  }
  expect(messageOf(new kafkajs.KafkaJSError('a record'))).toBe('Kafka: KafkaJSError')
})

test('the error of a cleanup does not hide the error before it', async () => {
  const failing = async (): Promise<void> => {
    await using stack = new AsyncDisposableStack()
    stack.defer(() => {
      throw new CommandError('the lock cannot be removed')
    })
    throw new CommandError('the files do not add up')
  }
  const error = await failing().catch((caught: unknown) => caught)
  expect(messageOf(error)).toBe('the files do not add up; after that the lock cannot be removed')
})
