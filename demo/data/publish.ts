/**
 * How a calculation system publishes: every event is one Kafka record, a CloudEvent in binary mode, keyed by its
 * organization. docs/publishing.md explains each choice made here.
 */
import kafkajs, { type Kafka, type Message } from 'kafkajs'

/** An event before it is a record. `time` is RFC 3339; `data` is as the schema of the type says. */
export type Event = {
  readonly id: string
  readonly type: string
  readonly time: string
  readonly data: { readonly org_id: string }
}

/** Who publishes, as a URI reference. It is stored nowhere. */
const SOURCE = '/demo/commission-calculation'

/** One event as a Kafka record. */
export const toMessage = ({ id, type, time, data }: Event): Message => ({
  // All events of an organization are in one partition, in the order they were published.
  key: data.org_id,
  headers: {
    ce_specversion: '1.0',
    ce_id: id,
    ce_type: type,
    ce_source: SOURCE,
    ce_time: time,
    'content-type': 'application/json',
  },
  value: JSON.stringify(data),
})

export type Publisher = {
  readonly connect: () => Promise<void>
  /** Resolves when every record is acknowledged by all replicas. Records are stored in the order given. */
  readonly publish: (topic: string, messages: readonly Message[], published?: (count: number) => void) => Promise<void>
  readonly disconnect: () => Promise<void>
}

export const createPublisher = (kafka: Kafka): Publisher => {
  const producer = kafka.producer({
    // A send that is tried again is stored once, and acks is `all`.
    idempotent: true,
    // murmur2 of the key, as Java clients do. The projector parks a record that is in another partition.
    createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
    // A mistyped topic must be an error, not a new topic that forgets after seven days.
    allowAutoTopicCreation: false,
  })
  return {
    connect: () => producer.connect(),
    disconnect: () => producer.disconnect(),
    publish: async (topic, messages, published = () => {}) => {
      // The next batch is sent only when the one before is stored: nothing overtakes.
      for (const batch of batchesOf(messages)) {
        await producer.send({ topic, messages: [...batch], acks: -1 })
        published(batch.length)
      }
    },
  }
}

/** What one batch may hold: Kafka counts a topic's `max.message.bytes` (9 MiB) for a whole batch, not for a record. */
const BATCH_BYTES = 1024 * 1024
const BATCH_RECORDS = 500

const batchesOf = function* (messages: readonly Message[]): Generator<Message[]> {
  let batch: Message[] = []
  let bytes = 0
  for (const message of messages) {
    const size = message.value === null ? 0 : Buffer.byteLength(message.value)
    if (batch.length > 0 && (bytes + size > BATCH_BYTES || batch.length === BATCH_RECORDS)) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(message)
    bytes += size
  }
  if (batch.length > 0) yield batch
}
