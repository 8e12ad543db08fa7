/**
 * The Kafka client of one process, as far as the projector uses it: consumers and admin clients.
 */
import type { Kafka } from 'kafkajs'
import { TOPIC_MESSAGE_BYTES_MAX } from '../../schemas/limits.ts'
import type { Broker } from './broker.ts'
import { createCall } from './call.ts'
import type { Host } from './clock.ts'
import { Consumer } from './consumer.ts'
import type { Coverage } from './coverage.ts'
import type { Faults } from './faults.ts'

export const createKafka = (
  host: Host,
  broker: Broker,
  faults: Faults,
  coverage: Coverage,
): { readonly kafka: Kafka; readonly consumers: readonly Consumer[] } => {
  const call = createCall(host, faults)
  const consumers: Consumer[] = []
  const offsets = (topic: string) =>
    broker
      .topic(topic)
      .partitions.map(({ end }, partition) => ({ partition, offset: `${end}`, high: `${end}`, low: '0' }))

  const admin = () => ({
    connect: () => call(() => undefined),
    disconnect: async () => undefined,
    describeCluster: () => call(() => ({ clusterId: 'simulated', brokers: [], controller: 0 })),
    fetchTopicMetadata: ({ topics }: { topics: string[] }) =>
      call(() => ({
        topics: topics.map(name => ({ name, partitions: broker.topic(name).partitions.map(() => ({})) })),
      })),
    fetchTopicOffsets: (topic: string) => call(() => offsets(topic)),
    describeConfigs: () => call(() => ({ resources: [{ configEntries }] })),
  })
  const consumer = ({ groupId }: { groupId: string }): Consumer => {
    const made = new Consumer(host, broker, faults, coverage, call, groupId)
    consumers.push(made)
    return made
  }
  return { kafka: { admin, consumer } as unknown as Kafka, consumers }
}

const configEntries = Object.entries({
  'cleanup.policy': 'delete',
  'retention.ms': '-1',
  'retention.bytes': '-1',
  'message.timestamp.type': 'LogAppendTime',
  'max.message.bytes': String(TOPIC_MESSAGE_BYTES_MAX),
}).map(([configName, configValue]) => ({ configName, configValue }))
