import { createRequire } from 'node:module'
import kafkajs from 'kafkajs'
import { expect, test } from 'vitest'
import { passOnRefusedRights } from '../../../../core/log/kafka/patch-refusals.ts'

type Ask = () => Promise<unknown>
const { prototype } = createRequire(import.meta.url)('kafkajs/src/cluster/brokerPool') as {
  prototype: { withBroker(ask: Ask): Promise<unknown> }
}

/** Asks three brokers. */
const askAll = (ask: Ask): Promise<unknown> => {
  passOnRefusedRights()
  passOnRefusedRights()
  return prototype.withBroker.call({ brokers: { 1: {}, 2: {}, 3: {} }, findBroker: async () => ({}) } as never, ask)
}
const refusal = new kafkajs.KafkaJSProtocolError({
  type: 'GROUP_AUTHORIZATION_FAILED',
  code: 30,
  retriable: false,
  message: '',
} as never)

test('a right that every broker refuses is reported', async () => {
  await expect(askAll(() => Promise.reject(refusal))).rejects.toBe(refusal)
})

test('a broker that answers counts, also after another one refused', async () => {
  let asked = 0
  const answer = await askAll(() => (asked++ === 0 ? Promise.reject(refusal) : Promise.resolve('coordinator')))
  expect([answer, asked]).toEqual(['coordinator', 2])
})

test('other errors stay silent: the client looks again', async () => {
  expect(await askAll(() => Promise.reject(new kafkajs.KafkaJSConnectionError('gone')))).toBeNull()
})
