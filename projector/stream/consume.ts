/**
 * The only file that knows kafkajs's consumer. In: a topic and a group. Out: batches as fetched, with the fetch offset
 * and the end of each. Promises: the handler returns soon, so that no slow partition stalls the others; nothing is
 * committed or resolved automatically; no error of ours reaches the client.
 *
 * Hazards of kafkajs, and what prevents them:
 * - It never prefetches: the next fetch waits for the handler. The handler only takes the batch, and pauses after a
 *   small one.
 * - After an out-of-range fetch it jumps to the end silently: `assign.ts` notices that the batch begins at another
 *   offset than it sought.
 * - It hands over no batch of only control or aborted records, and its filter lets aborted records through:
 *   `patch-aborted.ts`.
 * - It reads over the holes of a compacted log: each batch names the first missing offset.
 * - It starts at the committed offset: every partition is paused in the assignment event, and sought before it resumes.
 * - Some errors of a sick Kafka end it for good: `patch-retries.ts`.
 * - Its time grows with the square of the number of headers: `patch-headers.ts`.
 */
import kafkajs, { type Consumer, type EachBatchPayload, type Kafka } from 'kafkajs'
import type { RawRecord } from '../event/raw-record.ts'
import { nameOf, StopError } from '../failures.ts'
import { type Batch, bytesOfAll } from '../flow/queue.ts'
import { readRefusal } from '../kafka/access-refusal.ts'
import { passOnEmptyBatches, repairAbortedFilter } from '../kafka/patch-aborted.ts'
import { type EncodedHeaders, leaveHeadersEncoded, NO_HEADERS } from '../kafka/patch-headers.ts'
import { markTransientErrorsRetriable } from '../kafka/patch-retries.ts'
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
import { assignerOf, type InstallationIdentity } from './group.ts'
import type { Consumption, Handlers } from './stream-log.ts'

/** Joins the group and begins to read. @throws StopError `access_refused`; an error of the client if Kafka is away */
export const consume = async (
  kafka: Kafka,
  { topic, partitions }: { readonly topic: string; readonly partitions: number },
  groupId: string,
  installation: InstallationIdentity,
  handlers: Handlers,
): Promise<Consumption> => {
  leaveHeadersEncoded()
  repairAbortedFilter()
  passOnEmptyBatches()
  markTransientErrorsRetriable()
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
  listen(consumer, topic, groupId, handlers)
  try {
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      // One worker for each partition: none waits for another's pause. Not more, because each fetch starts all workers.
      partitionsConsumedConcurrently: partitions,
      eachBatch: async payload => {
        const bytes = takeBatch(payload, handlers)
        // Delays the next fetch: single records are then fetched and processed in fewer parts.
        if (bytes < FETCH_REST_BYTES) await handlers.sleep(FETCH_REST_MS)
      },
    })
  } catch (error) {
    await consumer.disconnect().catch(() => undefined)
    throw readRefusal(error, topic, groupId) ?? error
  }

  return {
    seek: (partition, offset) => ifJoined(() => consumer.seek({ topic, partition, offset: String(offset) })),
    pause: partition => ifJoined(() => consumer.pause([{ topic, partitions: [partition] }])),
    resume: partition => ifJoined(() => consumer.resume([{ topic, partitions: [partition] }])),
    commit: (partition, position) => consumer.commitOffsets([{ topic, partition, offset: String(position) }]),
    stop: () => consumer.disconnect(),
  }
}

/** Ignores the client's refusal outside of the group: the next assignment seeks every partition anew. */
const ifJoined = (act: () => void): void => {
  try {
    act()
  } catch (error) {
    if (!(error instanceof kafkajs.KafkaJSNonRetriableError)) throw error
  }
}

const listen = (consumer: Consumer, topic: string, groupId: string, handlers: Handlers): void => {
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    const partitions = payload.memberAssignment[topic] ?? []
    consumer.pause([{ topic, partitions }])
    handlers.onAssigned(partitions)
  })
  consumer.on(consumer.events.REBALANCING, () => handlers.onRebalancing())
  consumer.on(consumer.events.CRASH, ({ payload: { error, restart } }) => {
    if (restart) handlers.onTrouble(error instanceof kafkajs.KafkaJSError ? error.name : 'Error')
    else
      handlers.onStopped(
        readRefusal(error, topic, groupId) ?? new StopError('consumer_stopped', nameOf(error), { topic }),
      )
  })
}

/** A batch as the patches leave it, with the fields that its published type lacks. */
type FetchedBatch = Pick<EachBatchPayload['batch'], 'partition'> & {
  readonly fetchedOffset: string
  readonly messages: readonly Message[]
  /** All records from the fetch offset on, also control and aborted ones. */
  readonly messagesWithinOffset: readonly AnyMessage[]
}
type AnyMessage = {
  readonly offset: string
  readonly timestamp?: string
  /** Absent in record formats older than transactions. */
  readonly batchContext?: { readonly timestampType: number; readonly inTransaction: boolean }
}

/** Passes a batch to the handler. Returns the bytes of its records. */
const takeBatch = ({ batch, resolveOffset }: EachBatchPayload, handlers: Handlers): number => {
  const { fetchedOffset, partition, messages, messagesWithinOffset: all } = batch as unknown as FetchedBatch
  const from = Number(fetchedOffset)
  const missing = firstMissing(from, all)
  const last = all.at(-1)
  // Never `lastOffset()`: without records it is the high watermark, past an open transaction.
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
    // The partition was revoked. The next assignment seeks anew.
  }
  return bytesOfAll(records)
}

/**
 * Returns the first missing offset from `from` on. Brokers assign consecutive offsets, also to the records that end a
 * transaction: only compaction leaves a hole. `all` has the records from `from` on. If there are none, `from` is
 * missing.
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

type Message = Omit<EachBatchPayload['batch']['messages'][number], 'headers'> & {
  /** As `patch-headers.ts` leaves them. The oldest record format has none. */
  readonly headers?: EncodedHeaders
}

const toRecord = ({ offset, timestamp, key, value, headers = NO_HEADERS }: Message): RawRecord => ({
  offset: Number(offset),
  timestamp: Number(timestamp),
  key,
  value,
  headers,
})
