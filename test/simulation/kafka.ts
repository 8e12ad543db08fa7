/** The Kafka client of one process: the calls that projector and commands use. */
import kafkajs, { type Kafka } from 'kafkajs'
import { encodeHeaders } from '../../core/log/kafka/encoded-headers.ts'
import { topicOfRack } from '../../core/log/kafka/patch-topic-ids.ts'
import { TOPIC_MESSAGE_BYTES_MAX } from '../../schemas/limits.ts'
import { API_KEYS_GENERATION } from '../../schemas/stored/documents.ts'
import { AFTER_MAX_MS, type Broker } from './broker.ts'
import { type Call, createCall } from './call.ts'
import type { Clock, SimulatedProcess } from './clock.ts'
import { Consumer } from './consumer.ts'
import type { Coverage } from './coverage.ts'
import type { Faults } from './faults.ts'
import { API_KEYS, type Entry, EVENTS } from './history.ts'

/** Longest milliseconds until the ends of a topic are told: others write and publish past them meanwhile. */
const ENDS_LATE_MS = 2_000

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
        groups: ids.map(id => describeGroup(id, broker)),
      })),
    deleteGroups: () => step(() => []),
    describeCluster: () => call(() => ({ clusterId: broker.clusterId, brokers: [], controller: 0 })),
    fetchTopicMetadata: ({ topics }: { topics: string[] }) =>
      call(() => ({
        topics: topics.map(name => {
          const { id, partitions } = broker.topic(name)
          return {
            name,
            partitions: partitions.map(() => ({ replicas: [0], ...(broker.hasTopicIds && { topicId: id }) })),
          }
        }),
      })),
    fetchTopicOffsets: (topic: string) =>
      call<ReturnType<typeof offsets>>((answer: (found: ReturnType<typeof offsets>) => void) => {
        const found = offsets(topic)
        if (faults.happens('endsLate')) host.clock.after(faults.random.next() * ENDS_LATE_MS, () => answer(found))
        else answer(found)
      }),
    describeConfigs: ({ resources: [asked] }: Configured) =>
      call(() => ({ resources: [{ configEntries: entriesOf(broker.settingsOf(asked.name)) }] })),
    alterConfigs: ({ resources: [asked] }: Configured) =>
      step(() => {
        broker.setSettings(asked.name, new Map(asked.configEntries?.map(({ name, value }) => [name, value])))
        return {}
      }),
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
  const consumer = ({ groupId, rackId }: { groupId: string; rackId?: string }): Consumer => {
    const made = new Consumer(host, broker, faults, coverage, call, groupId, topicOfRack(rackId))
    consumers.push(made)
    return made
  }
  return { kafka: { admin, consumer, producer } as unknown as Kafka, consumers }
}

type Sent = { readonly topic: string; readonly messages: readonly SentMessage[] }
type Sendable = Buffer | string | null
type SentMessage = {
  readonly partition: number
  readonly key: Sendable
  readonly value: Sendable
  readonly headers: Readonly<Record<string, readonly Buffer[] | string>>
}

const bytesOf = (sent: Sendable): Buffer | null => (typeof sent === 'string' ? Buffer.from(sent) : sent)

const entryOf = (sent: SentMessage, offset: number, clock: Clock): Entry => {
  const { partition } = sent
  const [key, value] = [bytesOf(sent.key), bytesOf(sent.value)]
  const all = Object.entries(sent.headers).flatMap(([name, values]) =>
    (typeof values === 'string' ? [Buffer.from(values)] : values).map((one): [string, Buffer] => [name, one]),
  )
  const message = { offset: `${offset}`, timestamp: `${clock.now()}`, key, value, headers: encodeHeaders(all) }
  return {
    offset,
    kind: 'record',
    message,
    published: { stream: 'events', partition, offset, key, headers: all, value },
  }
}

/** The members have no metadata, and during a rebalance no assignment. Only projectors ask for the assignments. */
const describeGroup = (id: string, broker: Broker) => {
  const { count, assignments } = broker.membersOf(id)
  const topic = id.endsWith(`-${API_KEYS_GENERATION}`) ? API_KEYS : EVENTS
  const members = Array.from({ length: count }, (_, at) => ({
    memberMetadata: Buffer.alloc(0),
    memberAssignment: kafkajs.AssignerProtocol.MemberAssignment.encode({
      version: 1,
      assignment: { [topic]: [...(assignments?.[at] ?? [])] },
      userData: Buffer.alloc(0),
    }),
  }))
  return { state: assignments === undefined ? 'PreparingRebalance' : 'Stable', members }
}

type Configured = {
  readonly resources: readonly [
    { readonly name: string; readonly configEntries?: readonly { readonly name: string; readonly value: string }[] },
  ]
}
/** Kafka's number for a setting that the topic itself has. */
const OF_TOPIC = 1
const OF_BROKER = 5

const asCreated = {
  'cleanup.policy': 'delete',
  'retention.ms': '-1',
  'retention.bytes': '-1',
  'message.timestamp.type': 'LogAppendTime',
  'max.message.bytes': String(TOPIC_MESSAGE_BYTES_MAX),
}
const defaults = { 'message.timestamp.after.max.ms': String(AFTER_MAX_MS) }

/** The settings of a topic, as it was created and altered since, and the defaults of the broker. */
const entriesOf = (altered: ReadonlyMap<string, string>) => {
  const own = { ...asCreated, ...Object.fromEntries(altered) }
  return Object.entries({ ...defaults, ...own }).map(([configName, configValue]) => {
    return { configName, configValue, configSource: configName in own ? OF_TOPIC : OF_BROKER }
  })
}
