import { createRequire } from 'node:module'
import kafkajs from 'kafkajs'
import { expect, test } from 'vitest'
import { passOnRefusedRights, refuseNoMetadata } from '../../../../core/log/kafka/patch-refusals.ts'

type Ask = () => Promise<unknown>
const { prototype } = createRequire(import.meta.url)('kafkajs/src/cluster/brokerPool') as {
  prototype: { withBroker(ask: Ask): Promise<unknown> }
}

const cluster = createRequire(import.meta.url)('kafkajs/src/cluster/index') as {
  prototype: { metadata(): Promise<object | null> }
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

/** Asks for metadata, with the first answer of any broker. */
const askForMetadata = (answer: object | null): Promise<object | null> => {
  refuseNoMetadata()
  refuseNoMetadata()
  const brokerPool = { refreshMetadataIfNecessary: async () => undefined, withBroker: async () => answer }
  return cluster.prototype.metadata.call({ brokerPool, retrier: (ask: Ask) => ask() } as never)
}

test('metadata that no broker answers is an error of the client, which is no defect', async () => {
  const refused = await askForMetadata(null).catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(kafkajs.KafkaJSConnectionError)
  expect(refused).toMatchObject({ retriable: true })
})

test('metadata that a broker answers is passed on', async () => {
  const answer = { clusterId: 'cluster' }
  expect(await askForMetadata(answer)).toBe(answer)
})
