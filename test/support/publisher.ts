/** A publisher that sends again every record that Kafka did not acknowledge, as publishers must. */
import kafkajs from 'kafkajs'
import { closeAfterTimeout } from '../../core/log/kafka/patch-timeouts.ts'
import type { Outgoing } from './events.ts'
import type { Scope } from './scope.ts'
import { place, type Topics, toMessage } from './topics.ts'

export type Publisher = {
  /** The next offset of each partition, by the acknowledgements of Kafka. */
  readonly ends: () => readonly number[]
  /** The end in each partition after its first part that began since then and was acknowledged; undefined before. */
  readonly endsSince: (time: number) => readonly (number | undefined)[]
  /** For the report of a failure: when nothing is published, no position can move. */
  readonly soFar: () => string
  readonly stop: () => Promise<void>
}

const REQUEST_MS = 5_000
/** Pause before records are sent again. */
const AGAIN_MS = 200

/**
 * Publishes part after part until `stop` or the end of the parts. Records that are sent again may be in the log twice:
 * compare with `readLog`, not with `topics.published()`.
 * @param every milliseconds between two parts
 */
export const startPublisher = async (
  scope: Scope,
  topics: Topics,
  parts: Iterable<readonly Outgoing[]>,
  every: number,
): Promise<Publisher> => {
  const ends = Array.from({ length: topics.partitions }, () => 0)
  const acknowledgements: { readonly began: number; readonly partition: number; readonly end: number }[] = []
  let acknowledged = performance.now()
  let failure = ''
  // Without idempotence: after a failure the sequence numbers of client and broker would differ.
  // The default of 30 s for each request would hide how soon the projector continues after a broker is lost.
  const kafka = new kafkajs.Kafka({
    brokers: topics.brokers.split(','),
    logLevel: kafkajs.logLevel.NOTHING,
    requestTimeout: REQUEST_MS,
    retry: { initialRetryTime: 50, maxRetryTime: 500 },
  })
  closeAfterTimeout()
  const producer = kafka.producer({ allowAutoTopicCreation: false, retry: { retries: 2 } })
  await producer.connect()
  scope.onTestFinished(() => producer.disconnect().catch(() => undefined))
  const send = async (records: readonly Outgoing[]): Promise<void> => {
    const began = performance.now()
    const placed = records.map(record => place(record, topics.partitions))
    const topicMessages = (['events', 'api-keys'] as const).flatMap(stream => {
      const messages = placed.filter(record => record.stream === stream)
      return messages.length === 0 ? [] : [{ topic: topics.name(stream), messages: messages.map(toMessage) }]
    })
    for (const { topicName, partition, baseOffset } of await producer.sendBatch({ topicMessages, acks: -1 })) {
      if (topicName !== topics.events) continue
      const count = placed.filter(record => record.stream === 'events' && record.partition === partition).length
      const end = Number(baseOffset) + count
      ends[partition] = Math.max(ends[partition] ?? 0, end)
      acknowledgements.push({ began, partition, end })
    }
    acknowledged = performance.now()
    failure = ''
  }
  const sendAtLast = async (records: readonly Outgoing[]): Promise<void> => {
    for (let sent = false; !sent; ) {
      sent = await send(records).then(
        () => true,
        (error: unknown) => {
          failure = String(error)
          return false
        },
      )
      if (!sent) await passed(AGAIN_MS)
    }
  }
  let publishing = true
  const publishAll = async (): Promise<void> => {
    for (const records of parts) {
      await sendAtLast(records)
      await passed(every)
      if (!publishing) return
    }
  }
  const done = publishAll()
  const seconds = (): string => ((performance.now() - acknowledged) / 1_000).toFixed(1)
  return {
    ends: () => [...ends],
    endsSince: time =>
      ends.map((_, partition) => acknowledgements.find(one => one.partition === partition && one.began >= time)?.end),
    soFar: () => `to ${ends}, the last ${seconds()} s ago${failure && `; since then ${failure}`}`,
    stop: async () => {
      publishing = false
      await done
    },
  }
}

const passed = (milliseconds: number): Promise<void> => new Promise(resolve => setTimeout(resolve, milliseconds))
