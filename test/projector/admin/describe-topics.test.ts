import { expect, test } from 'vitest'
import { projectorSettings, readSettings } from '../../../core/runtime/settings.ts'
import { describeTopics } from '../../../projector/admin/describe-topics.ts'

const settings = readSettings(projectorSettings, {
  KAFKA_BROKERS: 'one:9093,two:9093',
  KAFKA_SSL: 'true',
  KAFKA_SASL_MECHANISM: 'scram-sha-256',
  KAFKA_SASL_USERNAME: 'somebody',
  KAFKA_SASL_PASSWORD: 'hunter2',
  ELASTICSEARCH_URL: 'https://me:hunter3@es:9200',
  ELASTICSEARCH_API_KEY: 'hunter4',
})
const events = { stream: 'events', topic: 'pay.events', partitions: 12 } as const
const apiKeys = { stream: 'api-keys', topic: 'pay.keys', partitions: 1 } as const

test('the document has the topics and the brokers with their protocol, and no credentials', () => {
  const document = describeTopics(settings, [apiKeys, events, events])
  const server = { protocol: 'kafka-secure', security: [{ type: 'scramSha256' }] }
  expect(document).toMatchObject({
    servers: { broker1: { host: 'one:9093', ...server }, broker2: { host: 'two:9093', ...server } },
    channels: { events: { address: 'pay.events' }, apiKeys: { address: 'pay.keys' } },
  })
  expect(JSON.stringify(document)).not.toMatch(/somebody|hunter|es:9200/)
})

test('the document has the size of a record that Kafka accepts, and of a value in it', () => {
  const document = describeTopics({ ...settings, KAFKA_MAX_MESSAGE_BYTES: 1_048_576 }, [apiKeys, events])
  const kafka = { topicConfiguration: { 'max.message.bytes': 1_048_576 } }
  expect(document).toMatchObject({ channels: { events: { bindings: { kafka } }, apiKeys: { bindings: { kafka } } } })
  expect(document?.info.description).toContain('A value may have up to 932067 bytes.')
})

test('a topic that grew is described by its successor, with the partitions of that', () => {
  const grown = { stream: 'events', topic: 'pay.events-36', partitions: 36 } as const
  expect(describeTopics(settings, [apiKeys, grown, events])).toMatchObject({
    channels: { events: { address: 'pay.events-36', bindings: { kafka: { partitions: 36 } } } },
  })
})

test('there is no document until both topics are known', () => {
  expect([describeTopics(settings, []), describeTopics(settings, [events])]).toEqual([undefined, undefined])
})
