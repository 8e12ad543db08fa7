/** The answers have the form in which kafkajs decodes those of Kafka. */
import { createRequire } from 'node:module'
import kafkajs from 'kafkajs'
import { expect, test } from 'vitest'
import { namePartitionsOfErrors, partitionsOf } from '../../../../core/log/kafka/patch-partition-errors.ts'
import { asUnanswered } from '../../../../core/log/kafka-retry.ts'

namePartitionsOfErrors()
namePartitionsOfErrors()
const load = createRequire(import.meta.url)
const { requests, lookup } = load('kafkajs/src/protocol/requests')
const [METADATA, LIST_OFFSETS] = [3, 2]
const [LEADER_NOT_AVAILABLE, OFFSET_NOT_AVAILABLE] = [5, 78]

const parse = (apiKey: number, definitions: object, answer: object): Promise<unknown> =>
  lookup({ [apiKey]: { minVersion: 0, maxVersion: 3 } })(apiKey, definitions)({ topics: [] }).response.parse(answer)
const metadata = (codes: readonly number[]) =>
  parse(METADATA, requests.Metadata, {
    topicMetadata: [
      { topic: 'keys', topicErrorCode: 0, partitionMetadata: [{ partitionId: 0, partitionErrorCode: 0 }] },
      {
        topic: 'events',
        topicErrorCode: 0,
        partitionMetadata: codes.map((partitionErrorCode, partitionId) => ({ partitionId, partitionErrorCode })),
      },
    ],
  })
const offsets = (codes: readonly number[]) => {
  const partitions = codes.map((errorCode, partition) => ({ partition, errorCode, offset: '7' }))
  return parse(LIST_OFFSETS, requests.ListOffsets, { responses: [{ topic: 'events', partitions }] })
}
const refused = (answer: Promise<unknown>): Promise<unknown> =>
  answer.then(
    () => expect.fail('it was not refused'),
    (error: unknown) => error,
  )

test('a partition without a leader, and one whose end is not told, are named with the type of the error', async () => {
  expect(partitionsOf(await refused(metadata([0, 0, LEADER_NOT_AVAILABLE])))).toBe('events 2 (LEADER_NOT_AVAILABLE)')
  expect(partitionsOf(await refused(offsets([0, OFFSET_NOT_AVAILABLE, 0, OFFSET_NOT_AVAILABLE])))).toBe(
    'events 1, 3 (OFFSET_NOT_AVAILABLE)',
  )
})

test('an answer without an error is as before', async () => {
  expect(await metadata([0, 0])).toMatchObject({ topicMetadata: [{ topic: 'keys' }, { topic: 'events' }] })
  expect(await offsets([0])).toMatchObject({ responses: [{ topic: 'events' }] })
})

test('of many partitions the first five are named, also after the retries of the client', async () => {
  const error = await refused(metadata(Array.from({ length: 8 }, () => LEADER_NOT_AVAILABLE)))
  const retried = new kafkajs.KafkaJSNumberOfRetriesExceeded(error as Error, { retryCount: 5, retryTime: 1 })
  Object.assign(retried, { cause: error })
  expect(() => asUnanswered(retried)).toThrow(
    'Kafka does not answer for events 0, 1, 2, 3, 4 and 3 more (LEADER_NOT_AVAILABLE)',
  )
})

test('an error that is about no partition names none', () => {
  for (const error of [new Error('defect'), new kafkajs.KafkaJSConnectionError('gone'), undefined]) {
    expect(partitionsOf(error)).toBeUndefined()
    expect(() => asUnanswered(error)).toThrow(/^Kafka does not answer$/)
  }
})
