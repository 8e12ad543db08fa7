/**
 * In: a topic, a partition, an offset. Out: each offset from there on, with what the log has there: a record, a record
 * of an aborted transaction, or a control record.
 * Promises: no group and no commit: reading leaves no trace. Nothing from the last stable offset on. No offset is
 *   passed over: a missing one is an error.
 *   Memory: one fetch, and one slice of it decompressed.
 * Can go wrong: Kafka is away (retries, then its error); it answers without records, although the log has some
 *   (retries, then `Unanswered`); the log was truncated or compacted (`records_deleted`); a batch is not as the broker
 *   stored it (`batch_changed`).
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { bytesOf, type RawRecord } from '../../ledger/index.ts'
import { StopError, Unanswered } from '../../runtime/index.ts'
import { BatchReader, SLICE_BYTES } from '../batch/read-batch.ts'
import { batchesOf, type EntryKind, type LogBatch } from '../batch/record-batch.ts'
import { withRight } from '../kafka/access-refusal.ts'
import { NO_HEADERS } from '../kafka/encoded-headers.ts'
import { fetchByTopicId } from '../kafka/patch-topic-ids.ts'
import {
  CHANGED_BATCH_READS,
  KNOWN_READS,
  KNOWN_RETRY_MS,
  UNANSWERED_READS,
  UNANSWERED_RETRY_MS,
  UNANSWERED_WAIT_MS,
} from '../limits.ts'
import { type FetchedLog, isOutOfRange, type LogCluster } from './open-cluster.ts'

/** One offset of a log. */
export type LogEntry = RawRecord & { readonly kind: EntryKind }

/** Kafka and an archive are both read through this. */
export type LogReader = {
  readonly topic: string
  /**
   * Returns entries from `from` on, each offset once, and the end of the partition. There are no entries only if `from`
   * is the end.
   */
  readonly read: (partition: number, from: number) => Promise<LogPart>
}
/** `epoch` is that of the leader that appended the last entry. An archive has none. */
export type LogPart = {
  readonly entries: readonly LogEntry[]
  readonly end: number
  readonly epoch?: number | undefined
}

const READ_COMMITTED = 1
/** Bytes of one fetch of one partition, by default. Milliseconds that a fetch waits for a record. */
const FETCH_LOG_BYTES = 4 * 1024 * 1024
const FETCH_LOG_WAIT_MS = 50

/**
 * @param fetchBytes of one fetch of one partition. A larger batch comes whole, and alone.
 * @param topicId if given, nothing of another topic of this name is read
 * @param pause waits between two fetches that bring nothing
 */
export const readLog = (
  cluster: LogCluster,
  topic: string,
  fetchBytes = FETCH_LOG_BYTES,
  topicId?: string,
  pause: Pause = sleep,
): LogReader => {
  /** By partition, the batch that is not read to its end. */
  const readers = new Map<number, BatchReader>()
  const fetchOnce = async (partition: number, from: number, wait: number): Promise<FetchedLog | undefined> => {
    const wanted = { partition, fetchOffset: String(from), maxBytes: fetchBytes }
    const answer = cluster.onLeader(partition, leader =>
      leader.fetch({
        ...fetchByTopicId(topicId),
        replicaId: -1,
        isolationLevel: READ_COMMITTED,
        maxWaitTime: wait,
        minBytes: 1,
        maxBytes: fetchBytes,
        topics: [{ topic, partitions: [wanted] }],
      }),
    )
    const { responses } = await withRight('Read', `topic ${topic}`, answer).catch((error: unknown) => {
      if (!isOutOfRange(error)) throw error
      throw deleted(`does not have offset ${from}, which it had`, { topic, partition, offset: from })
    })
    return responses[0]?.partitions[0]
  }
  /** Kafka answers a client above its quota at once, without the partition. kafkajs delays the next request then. */
  const fetch = async (partition: number, from: number, wait: number): Promise<FetchedLog> => {
    for (let throttled = 0; throttled < UNANSWERED_READS; throttled++) {
      const fetched = await fetchOnce(partition, from, wait)
      if (fetched !== undefined) return fetched
      await pause(UNANSWERED_RETRY_MS)
    }
    throw unanswered('it answers without this partition', { topic, partition, offset: from })
  }
  return {
    topic,
    read: async (partition, from) => {
      for (let attempt = 1; ; attempt++) {
        const fetched = await fetch(partition, from, attempt === 1 ? FETCH_LOG_WAIT_MS : UNANSWERED_WAIT_MS)
        const end = Number(fetched.lastStableOffset)
        const [message] = fetched.messages
        const batches = message ? batchesOf(message.fetched) : []
        const { entries, isChanged, epoch } = await readEntries(batches, from, { topic, partition }, readers)
        if (entries.length > 0 || (from >= end && !isChanged)) return { entries, end, epoch }
        if (isChanged && attempt >= CHANGED_BATCH_READS) {
          throw new StopError('batch_changed', `partition ${partition} of ${topic}`, { topic, partition, offset: from })
        }
        // A batch that begins later proves a hole. An empty answer does not: the broker may still read the records from
        // a remote storage, and cancels that if it takes too long.
        if (attempt === UNANSWERED_READS) {
          throw unanswered(`it tells the end ${end}, and gives no record`, { topic, partition, offset: from })
        }
        await pause(UNANSWERED_RETRY_MS)
      }
    },
  }
}

export type Pause = (milliseconds: number) => Promise<unknown>

/**
 * Reads from an offset at which the log had something before. Without entries, the log has lost it.
 * HAZARD: a new leader says for a moment that the log ends before what readers got of the old one. So a read that finds
 * nothing is repeated, KNOWN_READS times in all.
 */
export const readUntilFound = async (
  log: LogReader,
  partition: number,
  offset: number,
  pause: Pause,
): Promise<LogPart> => {
  for (let reads = 1; ; reads++) {
    const part = await log.read(partition, offset)
    if (part.entries.length > 0 || reads === KNOWN_READS) return part
    await pause(KNOWN_RETRY_MS)
  }
}

type Offset = { readonly topic: string; readonly partition: number; readonly offset: number }

const deleted = (what: string, where: Offset): StopError =>
  new StopError('records_deleted', `partition ${where.partition} of ${where.topic} ${what}`, where)

const unanswered = (what: string, { topic, partition, offset }: Offset): Unanswered =>
  new Unanswered('kafka', 0, `offset ${offset} of partition ${partition} of ${topic}: ${what}. ${SLOW}`)

const SLOW = 'Is it tiered storage, or a quota?'

type Entries = { readonly entries: LogEntry[]; readonly isChanged: boolean; readonly epoch: number | undefined }

/** Reads a slice. @throws StopError `records_deleted` that names the first missing offset */
const readEntries = async (
  batches: readonly LogBatch[],
  from: number,
  where: Pick<Offset, 'topic' | 'partition'>,
  readers: Map<number, BatchReader>,
): Promise<Entries> => {
  const entries: LogEntry[] = []
  const missing = (offset: number): StopError =>
    deleted(`continues after offset ${offset}, which is missing`, { ...where, offset })
  let [next, bytes] = [from, 0]
  let epoch: number | undefined
  for (const { kind, batch } of batches) {
    if (!batch.isIntact) return { entries, isChanged: true, epoch }
    // A fetch brings the whole batch that has the offset.
    if (batch.last < next) continue
    if (batch.first > next) throw missing(next)
    epoch = batch.epoch
    const known = readers.get(where.partition)
    const reader = known?.isOf(batch) ? known : new BatchReader(batch)
    readers.set(where.partition, reader)
    while (next <= batch.last && bytes < SLICE_BYTES) {
      const part = await reader.read(next)
      for (const record of part.records) {
        entries.push(part.undecodable && kind !== 'record' ? emptyEntry(kind, record) : { kind, ...record })
        bytes += bytesOf(record)
      }
      next = part.end
      if (part.missing !== undefined) throw missing(part.missing)
    }
    if (next <= batch.last) break
    readers.delete(where.partition)
    if (bytes >= SLICE_BYTES) break
  }
  return { entries, isChanged: false, epoch }
}

/** Readers get no record of an aborted batch, so nothing of it is kept if it cannot be read. */
const emptyEntry = (kind: EntryKind, { offset, timestamp }: RawRecord): LogEntry => {
  return { kind, offset, timestamp, key: null, value: null, headers: NO_HEADERS }
}
