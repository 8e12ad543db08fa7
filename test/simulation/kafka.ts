/** The Kafka client of one process: the calls that projector and commands use. */
import type { Kafka } from 'kafkajs'
import { encodeHeaders } from '../../projector/kafka/patch-headers.ts'
import { TOPIC_MESSAGE_BYTES_MAX } from '../../schemas/limits.ts'
import type { Broker } from './broker.ts'
import { type Call, createCall } from './call.ts'
import type { Clock, SimulatedProcess } from './clock.ts'
import { Consumer } from './consumer.ts'
import type { Coverage } from './coverage.ts'
import type { Faults } from './faults.ts'
import type { Entry } from './history.ts'

export const createKafka = (
  host: SimulatedProcess,
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

  const step: Call = work => {
    host.onStep()
    // The host was killed before it sent the request: the promise never settles.
    return host.isDead ? new Promise(() => undefined) : call(work)
  }
  const admin = () => ({
    connect: () => step(() => undefined),
    disconnect: async () => undefined,
    describeGroups: (ids: readonly string[]) =>
      step(() => ({
        groups: ids.map(id => ({ members: Array.from({ length: broker.membersOf(id) }, () => member) })),
      })),
    deleteGroups: () => step(() => []),
    describeCluster: () => call(() => ({ clusterId: 'simulated', brokers: [], controller: 0 })),
    fetchTopicMetadata: ({ topics }: { topics: string[] }) =>
      call(() => ({
        topics: topics.map(name => ({ name, partitions: broker.topic(name).partitions.map(() => ({})) })),
      })),
    fetchTopicOffsets: (topic: string) => call(() => offsets(topic)),
    describeConfigs: () => call(() => ({ resources: [{ configEntries }] })),
  })
  const producer = () => ({
    connect: () => step(() => undefined),
    disconnect: async () => undefined,
    send: ({ topic, messages }: Sent) =>
      step(() => {
        const first = new Map<number, number>()
        for (const message of messages) {
          const { partition } = message
          const offset = broker
            .topic(topic)
            .partitions[partition]?.append(offset => entryOf(message, offset, host.clock))
          if (!first.has(partition)) first.set(partition, offset ?? 0)
        }
        return [...first].map(([partition, offset]) => ({ partition, baseOffset: `${offset}` }))
      }),
  })
  const consumer = ({ groupId }: { groupId: string }): Consumer => {
    const made = new Consumer(host, broker, faults, coverage, call, groupId)
    consumers.push(made)
    return made
  }
  return { kafka: { admin, consumer, producer } as unknown as Kafka, consumers }
}

type Sent = { readonly topic: string; readonly messages: readonly SentMessage[] }
type SentMessage = {
  readonly partition: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: Readonly<Record<string, readonly Buffer[]>>
}

const entryOf = ({ partition, key, value, headers }: SentMessage, offset: number, clock: Clock): Entry => {
  const all = Object.entries(headers).flatMap(([name, values]) => values.map((one): [string, Buffer] => [name, one]))
  const message = { offset: `${offset}`, timestamp: `${clock.now()}`, key, value, headers: encodeHeaders(all) }
  return {
    offset,
    kind: 'record',
    message,
    published: { stream: 'events', partition, offset, key, headers: all, value },
  }
}

/** A group member without metadata and without an assignment. */
const member = { memberMetadata: Buffer.alloc(0), memberAssignment: Buffer.alloc(0) }

const configEntries = Object.entries({
  'cleanup.policy': 'delete',
  'retention.ms': '-1',
  'retention.bytes': '-1',
  'message.timestamp.type': 'LogAppendTime',
  'max.message.bytes': String(TOPIC_MESSAGE_BYTES_MAX),
}).map(([configName, configValue]) => ({ configName, configValue }))
