/**
 * The audit log in a topic of Kafka. Each line is a record, with the organization as its record key.
 * Promises: a line is written when all replicas in sync have it, and is in the topic once: the producer is idempotent,
 *   and nothing is sent again after an error.
 * Can go wrong: Kafka is away, or refuses, or the client says nothing for AUDIT_KAFKA_WRITE_MAX → the lines are lost,
 *   although Kafka may have some of them. The next write makes a new client: the old one may wait for ever or count
 *   wrongly.
 */
import type { Message, Producer } from 'kafkajs'
import type { Schedule } from '../../core/runtime/index.ts'
import { kafkaRefusals } from '../../schemas/access.ts'
import { AUDIT_KAFKA_WRITE_MAX } from '../limits.ts'
import type { AuditLog } from './audit-reads.ts'

type Sender = Pick<Producer, 'connect' | 'disconnect' | 'send'>

const ALL_REPLICAS = -1
/** A batch has more bytes than `max.message.bytes` of the topic, or than its `segment.bytes`. */
const tooLarge: ReadonlySet<string> = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE'])

/** @param createProducer returns a new client with idempotence, not yet connected */
export const createTopicLog = (topic: string, createProducer: () => Sender, later: Schedule): AuditLog => {
  let connected: Promise<Sender> | undefined

  const connect = async (): Promise<Sender> => {
    const producer = createProducer()
    try {
      await producer.connect()
      return producer
    } catch (error) {
      void producer.disconnect().catch(() => undefined)
      throw error
    }
  }

  const end = async (): Promise<void> => {
    const ending = connected
    connected = undefined
    await ending?.then(producer => producer.disconnect()).catch(() => undefined)
  }

  /** Returns why Kafka may not have these messages; undefined if it has them. */
  const send = async (messages: Message[]): Promise<string | undefined> => {
    try {
      connected ??= connect()
      await (await connected).send({ topic, acks: ALL_REPLICAS, messages })
      return undefined
    } catch (error) {
      return reasonOfKafka(error, topic)
    }
  }

  return {
    write: async lines => {
      const messages = lines.map(({ text, org }): Message => ({ key: org ?? null, value: text.trimEnd() }))
      const { promise: timeIsUp, resolve } = Promise.withResolvers<string>()
      const cancel = later(AUDIT_KAFKA_WRITE_MAX, () => resolve('too_slow'))
      const reason = await Promise.race([send(messages), timeIsUp])
      cancel()
      if (reason === undefined) return { lines: lines.length }
      // Nobody waits: a client of a silent broker takes long to disconnect.
      void end()
      // The lines go to several partitions: some may have them.
      return { lines: 0, reason, ...(tooLarge.has(reason) && { isTooLarge: true }) }
    },
    end,
  }
}

/**
 * Returns the right that Kafka refuses, the code of the protocol, or the class of the error: never its message, which
 * has addresses. An idempotent producer without Write on any topic is refused as if it lacked a right on the cluster.
 */
export const reasonOfKafka = (error: unknown, topic: string): string => {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if (!(cause instanceof Error)) return 'failed'
  if (!('type' in cause) || typeof cause.type !== 'string') return cause.name
  return kafkaRefusals.has(cause.type) ? `Kafka refuses Write on topic ${topic}` : cause.type
}
