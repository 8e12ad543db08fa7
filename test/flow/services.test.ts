/** The real Kafka and Elasticsearch of all tests, with the settings that the project needs. */
import { randomUUID } from 'node:crypto'
import { Client } from '@elastic/elasticsearch'
import kafkajs, { type KafkaMessage } from 'kafkajs'
import { beforeAll, expect, inject, onTestFinished, test } from 'vitest'
import { registerCodecs } from '../support/codecs.ts'
import { createWithLeaders, LONG_CHANGE, LONG_CONNECT } from '../support/topics.ts'

const mebibyte = 1024 * 1024
const { CompressionTypes, Kafka, logLevel } = kafkajs
const kafka = new Kafka({
  brokers: inject('kafkaBrokers').split(','),
  logLevel: logLevel.NOTHING,
  ...LONG_CONNECT,
  retry: { retries: 3 },
})

beforeAll(() => registerCodecs())

test('Kafka returns the messages that were sent to it', async () => {
  const topic = await createTopic()
  const producer = await connectedProducer()
  await producer.send({ topic, messages: [{ key: 'org_1', value: 'first' }] })
  await producer.send({ topic, messages: [{ key: 'org_1', value: 'second' }] })

  const messages = await readMessages(topic, 2)
  expect(messages.map(({ key, value }) => [String(key), String(value)])).toEqual([
    ['org_1', 'first'],
    ['org_1', 'second'],
  ])
})

test('a record of 8 MiB fits in a topic that allows 9 MiB', async () => {
  const topic = await createTopic({ 'max.message.bytes': String(9 * mebibyte) })
  const producer = await connectedProducer()
  const value = Buffer.alloc(8 * mebibyte, randomUUID())
  await producer.send({ topic, messages: [{ key: 'org_1', value }] })

  const [message] = await readMessages(topic, 1)
  expect(message?.value?.equals(value)).toBe(true)
})

test.for(['None', 'GZIP', 'Snappy', 'LZ4', 'ZSTD'] as const)(
  'Kafka accepts batches with compression %s',
  async name => {
    const topic = await createTopic()
    const producer = await connectedProducer()
    const values = ['a'.repeat(5_000), 'b'.repeat(5_000)]
    await producer.send({ topic, messages: values.map(value => ({ value })), compression: CompressionTypes[name] })

    expect((await readMessages(topic, 2)).map(({ value }) => String(value))).toEqual(values)
  },
)

test('a send to a missing topic does not create it', async () => {
  const producer = await connectedProducer()
  const sending = producer.send({ topic: `never-created-${randomUUID()}`, messages: [{ value: 'lost' }] })
  await expect(sending).rejects.toThrow(/does not host this topic-partition/)
})

test('Elasticsearch returns the documents that were indexed', async () => {
  await using elasticsearch = new TestClient()
  const index = await elasticsearch.createIndex()
  await elasticsearch.client.index({ index, id: 'pay_1', document: { amount: '12.30' }, refresh: true })

  const { _source: byId } = await elasticsearch.client.get({ index, id: 'pay_1' })
  expect(byId).toEqual({ amount: '12.30' })
  const { hits } = await elasticsearch.client.search({ index, query: { term: { amount: '12.30' } } })
  expect(hits.hits.map(({ _id }) => _id)).toEqual(['pay_1'])
})

test('Elasticsearch passes the product check of its client', async () => {
  await using elasticsearch = new TestClient()
  const { version, tagline } = await elasticsearch.client.info()
  expect(version.number).toMatch(/^9\./)
  expect(tagline).toBe('You Know, for Search')
})

const createTopic = async (config: Record<string, string> = {}): Promise<string> => {
  const topic = `services-${randomUUID()}`
  const admin = kafka.admin()
  await admin.connect()
  onTestFinished(async () => {
    await admin.deleteTopics({ topics: [topic], ...LONG_CHANGE })
    await admin.disconnect()
  })
  const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }))
  const topics = [{ topic, numPartitions: 1, configEntries }]
  await createWithLeaders(admin, topics)
  return topic
}

const connectedProducer = async () => {
  const producer = kafka.producer()
  await producer.connect()
  onTestFinished(() => producer.disconnect())
  return producer
}

/** The first messages of a topic, once the expected number has arrived. */
const readMessages = async (topic: string, count: number): Promise<KafkaMessage[]> => {
  const consumer = kafka.consumer({
    groupId: `reader-${topic}`,
    maxWaitTimeInMs: 100,
    maxBytesPerPartition: 9 * mebibyte,
  })
  await consumer.connect()
  onTestFinished(() => consumer.disconnect())
  await consumer.subscribe({ topic, fromBeginning: true })

  const read = Promise.withResolvers<KafkaMessage[]>()
  const messages: KafkaMessage[] = []
  await consumer.run({
    eachMessage: async ({ message }) => {
      messages.push(message)
      if (messages.length === count) read.resolve(messages)
    },
  })
  return read.promise
}

class TestClient implements AsyncDisposable {
  readonly client = new Client({ node: inject('elasticsearchUrl'), maxRetries: 0 })
  readonly #indices: string[] = []

  async createIndex(): Promise<string> {
    const index = `services-${randomUUID()}`
    this.#indices.push(index)
    await this.client.indices.create({
      index,
      settings: { number_of_replicas: 0 },
      mappings: { dynamic: 'strict', properties: { amount: { type: 'keyword' } } },
    })
    return index
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#indices.length > 0) await this.client.indices.delete({ index: this.#indices })
    await this.client.close()
  }
}
