/** A test's own topics on a real Kafka, created like `commission topics` does, and the records published to them. */
import { randomBytes } from 'node:crypto'
import kafkajs, { type Admin, type IHeaders, type ITopicConfig, type ProducerBatch, type RecordMetadata } from 'kafkajs'
import { expect, inject } from 'vitest'
import { clearBufferOnReconnect } from '../../core/log/kafka/patch-connections.ts'
import type { Stream } from '../../schemas/events.ts'
import { TOPIC_MESSAGE_BYTES_MAX } from '../../schemas/limits.ts'
import type { Outgoing } from './events.ts'
import { type ModelRecord, partitionOf } from './model-record.ts'
import { eventually, type Scope } from './scope.ts'

export type Topics = {
  readonly events: string
  readonly apiKeys: string
  readonly partitions: number
  readonly brokers: string
  readonly admin: Admin
  readonly kafka: kafkajs.Kafka
  readonly name: (stream: Stream) => string
  /** Sends records in order and waits until Kafka has them. Returns each with its offset. */
  readonly publish: (records: readonly Outgoing[], compression?: kafkajs.CompressionTypes) => Promise<Published[]>
  /** Everything published so far, in order. */
  readonly published: () => readonly Published[]
}

export type Published = ModelRecord & { readonly stream: Stream; readonly partition: number }

/** A busy machine is slow. By default kafkajs gives a connection 1 s, the change of a topic 5 s, a transaction 60 s. */
export const LONG_CONNECT = { connectionTimeout: 30_000 }
export const LONG_CHANGE = { timeout: 60_000 }

/**
 * Creates topics, and waits until each has a leader. The client's own wait sometimes fails while a broker does not know
 * the topic yet.
 */
export const createWithLeaders = async (
  admin: Pick<Admin, 'createTopics' | 'fetchTopicMetadata'>,
  given: ITopicConfig[],
  names = given.map(({ topic }) => topic),
): Promise<void> => {
  await admin.createTopics({ waitForLeaders: false, topics: given, ...LONG_CHANGE })
  await eventually(async () => {
    const { topics } = await admin.fetchTopicMetadata({ topics: names })
    const leaders = topics.flatMap(topic => topic.partitions.map(({ leader }) => leader))
    expect(leaders).toEqual(leaders.map(() => expect.toSatisfy((leader: number) => leader >= 0)))
  })
}
export const LONG_TRANSACTION = { transactionTimeout: 600_000 }

type Options = {
  readonly partitions?: number
  /** The brokers of each partition of the events. Otherwise Kafka chooses. */
  readonly replicas?: readonly (readonly number[])[]
  readonly keyPartitions?: number
  /** Overrides the configuration that `commission topics` gives a topic. */
  readonly configuration?: Readonly<Record<string, string>>
  /** Uses these names; an existing topic stays. */
  readonly named?: Pick<Topics, 'events' | 'apiKeys'>
  /** Address of the test's own Kafka. Otherwise the topics are deleted with the scope. */
  readonly kafka?: string
}

export const createTopics = async (scope: Scope, options: Options = {}): Promise<Topics> => {
  const { partitions = 3, keyPartitions = 1, configuration = {}, replicas } = options
  // Otherwise a response that a fault cuts off silences this client, and the test accuses the projector.
  clearBufferOnReconnect()
  const brokers = options.kafka ?? inject('kafkaBrokers')
  const kafka = new kafkajs.Kafka({
    brokers: brokers.split(','),
    logLevel: kafkajs.logLevel.NOTHING,
    ...LONG_CONNECT,
    // To a faulty Kafka, retry until a record is there: then the test knows the content of the log.
    retry: { initialRetryTime: 50, maxRetryTime: 500, retries: options.kafka === undefined ? 60 : 1_000 },
  })
  const { events, apiKeys } = options.named ?? newNames()

  const admin = kafka.admin()
  await admin.connect()
  scope.onTestFinished(async () => {
    if (options.kafka !== undefined) return admin.disconnect().catch(() => undefined)
    const there = await admin.listTopics()
    await admin.deleteTopics({ topics: [events, apiKeys].filter(topic => there.includes(topic)), ...LONG_CHANGE })
    await admin.disconnect()
  })
  const there = await admin.listTopics()
  const wanted = [
    replicas === undefined
      ? { topic: events, numPartitions: partitions }
      : { topic: events, replicaAssignment: replicas.map((of, partition) => ({ partition, replicas: [...of] })) },
    { topic: apiKeys, numPartitions: keyPartitions },
  ].filter(({ topic }) => !there.includes(topic))
  const configEntries = Object.entries({ ...keepsEverything, ...configuration }).map(([name, value]) => ({
    name,
    value,
  }))
  const given = wanted.map(topic => ({ ...topic, configEntries }))
  await createWithLeaders(admin, given, [events, apiKeys])

  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1, allowAutoTopicCreation: false })
  await producer.connect()
  scope.onTestFinished(() => producer.disconnect().catch(() => undefined))

  const all: Published[] = []
  const name = (stream: Stream): string => (stream === 'events' ? events : apiKeys)
  return {
    events,
    apiKeys,
    partitions,
    brokers,
    admin,
    kafka,
    name,
    publish: async (records, compression = kafkajs.CompressionTypes.None) => {
      const placed = records.map(record => place(record, partitions))
      const published = await send(placed, name, batch => producer.sendBatch({ ...batch, acks: -1, compression }))
      all.push(...published)
      return published
    },
    published: () => all,
  }
}

const newNames = (): Pick<Topics, 'events' | 'apiKeys'> => {
  const name = `test.${randomBytes(6).toString('hex')}`
  return { events: `${name}.events`, apiKeys: `${name}.api-keys` }
}

const keepsEverything = {
  'cleanup.policy': 'delete',
  'retention.ms': '-1',
  'retention.bytes': '-1',
  'message.timestamp.type': 'LogAppendTime',
  'max.message.bytes': String(TOPIC_MESSAGE_BYTES_MAX),
}

export type Placed = Outgoing & { readonly partition: number }

/** Sets the partition like Kafka's default partitioner: by the key as text. */
export const place = (record: Outgoing, partitions: number): Placed => {
  if (record.stream === 'api-keys') return { ...record, partition: 0 }
  const { partition = record.key === null ? 0 : partitionOf(String(record.key), partitions) } = record
  return { ...record, partition }
}

/** Bytes of values per request: a topic accepts 9 MiB per partition. */
const SEND_BYTES = 4 * 1024 * 1024

const send = async (
  records: readonly Placed[],
  name: (stream: Stream) => string,
  sendBatch: (batch: Pick<ProducerBatch, 'topicMessages'>) => Promise<RecordMetadata[]>,
): Promise<Published[]> => {
  const published: Published[] = []
  for (const part of split(records)) {
    const topicMessages = (['events', 'api-keys'] as const).flatMap(stream => {
      const messages = part.filter(record => record.stream === stream)
      // The client's encoder accepts a null value and lists of bytes as headers; its types do not.
      return messages.length === 0 ? [] : [{ topic: name(stream), messages: messages.map(toMessage) }]
    })
    const answers = await sendBatch({ topicMessages })
    const next = new Map(
      answers.map(({ topicName, partition, baseOffset }) => [`${topicName}:${partition}`, Number(baseOffset)]),
    )
    for (const record of part) {
      const partition = `${name(record.stream)}:${record.partition}`
      const offset = next.get(partition)
      if (offset === undefined) throw new Error(`Kafka did not say where it put a record of ${partition}`)
      next.set(partition, offset + 1)
      published.push(toPublished(record, offset))
    }
  }
  return published
}

function* split(records: readonly Placed[]): Generator<Placed[]> {
  let part: Placed[] = []
  let bytes = 0
  for (const record of records) {
    const length = record.value?.length ?? 0
    if (part.length > 0 && bytes + length > SEND_BYTES) {
      yield part
      part = []
      bytes = 0
    }
    part.push(record)
    bytes += length
  }
  if (part.length > 0) yield part
}

export const toMessage = ({ key, headers, value, partition, timestamp }: Placed) => ({
  key,
  headers: headers as IHeaders,
  value,
  partition,
  ...(timestamp !== undefined && { timestamp: String(timestamp) }),
})

export const toPublished = ({ stream, partition, key, headers, value }: Placed, offset: number): Published => ({
  stream,
  partition,
  offset,
  key: key === null ? null : Buffer.from(key),
  headers: Object.entries(headers).flatMap(([name, values]) =>
    (Array.isArray(values) ? values : [values]).map(header => [name, Buffer.from(header)] as const),
  ),
  value: value === null ? null : Buffer.from(value),
})
