/**
 * Publishes as a calculation system does. docs/publishing.md explains each choice. Each event is a Kafka record: a
 * CloudEvent in binary mode, keyed by its organization.
 */
import kafkajs, { type Kafka, type Message, type RecordMetadata } from 'kafkajs'

/** An event before it becomes a record. `time` is RFC 3339; `data` follows the schema of the type. */
export type Event = {
  readonly id: string
  readonly type: string
  readonly time: string
  readonly data: { readonly org_id: string }
}

/** The publisher, as a URI reference. It is stored nowhere. */
const SOURCE = '/demo/commission-calculation'

/** Returns an event as a Kafka record. */
export const toMessage = ({ id, type, time, data }: Event): Message => ({
  // Keeps all events of an organization in one partition, in order.
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
  /**
   * Resolves when all replicas have acknowledged every record. Keeps the given order. Returns Kafka's answers: for each
   * batch and partition, the offset of its first record.
   */
  readonly publish: (
    topic: string,
    messages: readonly Message[],
    onPublished?: (count: number) => void,
  ) => Promise<RecordMetadata[]>
  readonly disconnect: () => Promise<void>
}

/** Creates a publisher. It is not connected yet. */
export const createPublisher = (kafka: Kafka): Publisher => {
  const producer = kafka.producer({
    // A retried send is stored once; acks is `all`.
    idempotent: true,
    // murmur2 of the key, as in Java clients. The projector parks a record that is in another partition.
    createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
    // A mistyped topic must fail, and not create a topic that deletes records after seven days.
    allowAutoTopicCreation: false,
  })
  return {
    connect: () => producer.connect(),
    disconnect: () => producer.disconnect(),
    publish: async (topic, messages, onPublished = () => {}) => {
      const stored: RecordMetadata[] = []
      // Sends a batch only after the one before is stored, which keeps the order.
      for (const batch of batchesOf(messages)) {
        stored.push(...(await producer.send({ topic, messages: [...batch], acks: -1 })))
        onPublished(batch.length)
      }
      return stored
    },
  }
}

/** Limits of a batch: Kafka applies `max.message.bytes` of the topic (9 MiB) to a whole batch, not to a record. */
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
