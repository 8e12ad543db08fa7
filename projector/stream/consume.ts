/**
 * The only file that knows the Kafka client's consumer. In: a topic and a group. Out: batches as they were read, each
 * with the offset it was fetched at and where it ends. Promises: the handler returns at once, so that one slow
 * partition never stalls the others; nothing is committed or resolved on its own; no error of ours ever escapes into
 * the client.
 *
 * The client's traps, and what is done about each:
 * - It never prefetches: the next fetch waits for the handler. So the handler only takes the batch, and rests a little
 *   where there was not much.
 * - A fetch that is out of range silently jumps to the end: the batch then was fetched at an offset that nobody asked
 *   for.
 * - Batches of only control or aborted records never reach the handler: see `patch-aborted.ts`.
 * - A log that was compacted has holes, and the client reads over them: each batch tells of the first offset it misses.
 * - Its filter lets aborted records through: see patch-aborted.ts.
 * - An assignment starts at the committed offset: every partition is paused in the event itself and sought before it
 *   goes on.
 * - Some errors of a sick Kafka end it for good: see `patch-retries.ts`.
 * - It takes time that grows with the square of the number of headers: see `patch-headers.ts`.
 */
import kafkajs, { type Consumer, type EachBatchPayload, type Kafka } from 'kafkajs'
import type { RawRecord } from '../event/raw-record.ts'
import { type Batch, bytesOfAll } from '../flow/queue.ts'
import { handOverEveryBatch, repairAbortedFilter } from '../kafka/patch-aborted.ts'
import { type EncodedHeaders, leaveHeadersEncoded, NO_HEADERS } from '../kafka/patch-headers.ts'
import { startAgainWhenSick } from '../kafka/patch-retries.ts'
import {
  FETCH_BYTES,
  FETCH_PARTITION_BYTES,
  FETCH_REST_BYTES,
  FETCH_REST_MS,
  FETCH_WAIT_MS,
  HEARTBEAT_INTERVAL_MS,
  REBALANCE_TIMEOUT_MS,
  SESSION_TIMEOUT_MS,
} from '../limits.ts'
import { assignerOf, type Installation } from './group.ts'

export type Handlers = {
  /** These partitions are ours from now on, and no others. All are paused until they are sought and resumed. */
  readonly onAssigned: (partitions: readonly number[]) => void
  readonly onBatch: (partition: number, batch: Batch) => void
  /** Resolves after so many milliseconds. */
  readonly sleep: (milliseconds: number) => Promise<void>
  /** The group shares its partitions out again. */
  readonly onRebalancing: () => void
  /** The client lost its way and starts again by itself. */
  readonly onTrouble: (name: string) => void
  /** The client gave up. */
  readonly onStopped: (error: Error) => void
}

export type Consumption = {
  readonly seek: (partition: number, offset: number) => void
  readonly pause: (partition: number) => void
  readonly resume: (partition: number) => void
  readonly commit: (partition: number, position: number) => Promise<void>
  readonly stop: () => Promise<void>
}

/** Joins the group and begins to read. @throws what the client throws when Kafka is away */
export const consume = async (
  kafka: Kafka,
  { topic, partitions }: { readonly topic: string; readonly partitions: number },
  groupId: string,
  installation: Installation,
  handlers: Handlers,
): Promise<Consumption> => {
  leaveHeadersEncoded()
  repairAbortedFilter()
  handOverEveryBatch()
  startAgainWhenSick()
  const consumer = kafka.consumer({
    groupId,
    sessionTimeout: SESSION_TIMEOUT_MS,
    heartbeatInterval: HEARTBEAT_INTERVAL_MS,
    rebalanceTimeout: REBALANCE_TIMEOUT_MS,
    maxBytesPerPartition: FETCH_PARTITION_BYTES,
    maxBytes: FETCH_BYTES,
    maxWaitTimeInMs: FETCH_WAIT_MS,
    allowAutoTopicCreation: false,
    readUncommitted: false,
    partitionAssigners: [assignerOf(installation)],
  })
  listen(consumer, topic, handlers)
  try {
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      // All of a fetch at once, so that none waits for the rest after another. The client asks each of them at every
      // fetch.
      partitionsConsumedConcurrently: partitions,
      eachBatch: async payload => {
        const bytes = takeBatch(payload, handlers)
        // The next fetch waits for this: what comes one by one is fetched, and goes all its way, in fewer parts.
        if (bytes < FETCH_REST_BYTES) await handlers.sleep(FETCH_REST_MS)
      },
    })
  } catch (error) {
    await consumer.disconnect().catch(() => undefined)
    throw error
  }

  return {
    seek: (partition, offset) => ifJoined(() => consumer.seek({ topic, partition, offset: String(offset) })),
    pause: partition => ifJoined(() => consumer.pause([{ topic, partitions: [partition] }])),
    resume: partition => ifJoined(() => consumer.resume([{ topic, partitions: [partition] }])),
    commit: (partition, position) => consumer.commitOffsets([{ topic, partition, offset: String(position) }]),
    stop: () => consumer.disconnect(),
  }
}

/** Out of the group the client refuses these; the next assignment positions every partition anew. */
const ifJoined = (act: () => void): void => {
  try {
    act()
  } catch (error) {
    if (!(error instanceof kafkajs.KafkaJSNonRetriableError)) throw error
  }
}

const listen = (consumer: Consumer, topic: string, handlers: Handlers): void => {
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    const partitions = payload.memberAssignment[topic] ?? []
    consumer.pause([{ topic, partitions }])
    handlers.onAssigned(partitions)
  })
  consumer.on(consumer.events.REBALANCING, () => handlers.onRebalancing())
  consumer.on(consumer.events.CRASH, ({ payload: { error, restart } }) => {
    if (restart) handlers.onTrouble(error instanceof kafkajs.KafkaJSError ? error.name : 'Error')
    else handlers.onStopped(error)
  })
}

/**
 * The batch as the client has it. Its published type lacks where it was fetched, and all of its records from there on.
 */
type FetchedBatch = EachBatchPayload['batch'] & {
  readonly fetchedOffset: string
  /** Control records and aborted records included. */
  readonly messagesWithinOffset: readonly AnyMessage[]
}
type AnyMessage = {
  readonly offset: string
  readonly timestamp?: string
  /** Absent in formats from before transactions. */
  readonly batchContext?: { readonly timestampType: number; readonly inTransaction: boolean }
}

/** Returns how many bytes there were. */
const takeBatch = ({ batch, resolveOffset }: EachBatchPayload, handlers: Handlers): number => {
  const { fetchedOffset, partition, messages, messagesWithinOffset: all } = batch as FetchedBatch
  const from = Number(fetchedOffset)
  const missing = firstMissing(from, all)
  const last = all.at(-1)
  // Never `lastOffset()` of a batch without records: that is the high watermark, past an open transaction.
  const end = last === undefined ? from : Number(last.offset) + 1
  const records = messages.map(toRecord)
  const appended = appendedOf(all)
  handlers.onBatch(partition, {
    from,
    end,
    records,
    ...(missing !== undefined && { missing }),
    ...(appended !== undefined && { appended }),
  })
  try {
    if (last !== undefined) resolveOffset(last.offset)
  } catch {
    // The client knows nothing of a partition that has just been taken away; the next assignment is positioned anew.
  }
  return bytesOfAll(records)
}

/**
 * The first offset from `from` on that the log no longer has. A broker gives a publisher's records consecutive offsets,
 * and so it does with the records that end a transaction: only compaction leaves a hole. A fetch brings the whole batch
 * that holds the offset it was asked for, so a fetch that brings records begins with that offset.
 */
const firstMissing = (from: number, all: readonly AnyMessage[]): number | undefined => {
  let next = from
  for (const { offset } of all) {
    if (Number(offset) !== next) return next
    next++
  }
  return all.length === 0 ? from : undefined
}

const LOG_APPEND_TIME = 1

const appendedOf = (all: readonly AnyMessage[]): Batch['appended'] => {
  if (all.some(({ batchContext }) => batchContext?.inTransaction)) return 'transaction'
  const last = all.at(-1)
  if (last?.batchContext?.timestampType !== LOG_APPEND_TIME) return undefined
  return { offset: Number(last.offset), time: Number(last.timestamp) }
}

type Message = EachBatchPayload['batch']['messages'][number]

const toRecord = ({ offset, timestamp, key, value, headers }: Message): RawRecord => ({
  offset: Number(offset),
  timestamp: Number(timestamp),
  key,
  value,
  // As `patch-headers.ts` has the client leave them; the oldest format of records has none.
  headers: (headers as unknown as EncodedHeaders | undefined) ?? NO_HEADERS,
})
