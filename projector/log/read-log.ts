/**
 * In: a topic, a partition, an offset. Out: each offset from there on, with what the log has there: a record, a record
 * of an aborted transaction, or a control record.
 * Promises: no group and no commit: reading leaves no trace. Nothing from the last stable offset on. No offset is
 *   passed over: a missing one is an error.
 * Can go wrong: Kafka is away (retries, then its error); the log was truncated or compacted (`records_deleted`).
 */
import { setTimeout as sleep } from 'node:timers/promises'
import kafkajs from 'kafkajs'
import type { RawRecord } from '../event/raw-record.ts'
import { StopError } from '../failures.ts'
import { withRight } from '../kafka/access-refusal.ts'
import { repairAbortedFilter } from '../kafka/patch-aborted.ts'
import { EncodedHeaders, leaveHeadersEncoded, NO_HEADERS } from '../kafka/patch-headers.ts'
import type { FetchedLog, LogCluster } from './open-cluster.ts'

/** One offset of a log. Readers see a `record`; the others are holes for them. */
export type LogEntry = RawRecord & { readonly kind: 'record' | 'aborted' | 'control' }

/** Kafka and an archive are both read through this. */
export type LogReader = {
  readonly topic: string
  /**
   * Returns entries from `from` on, each offset once, and the end of the partition. There are no entries only if `from`
   * is the end.
   */
  readonly read: (partition: number, from: number) => Promise<LogPart>
}
export type LogPart = { readonly entries: readonly LogEntry[]; readonly end: number }

const READ_COMMITTED = 1
/** Bytes of one fetch of one partition, by default. Milliseconds that a fetch waits for a record. */
const FETCH_LOG_BYTES = 4 * 1024 * 1024
const FETCH_LOG_WAIT_MS = 50
/** Attempts of a fetch that brings nothing although the log continues, and milliseconds between two of them. */
const EMPTY_ATTEMPTS = 20
const EMPTY_RETRY_MS = 250

/** @param fetchBytes of one fetch of one partition. A larger batch comes whole, and alone. */
export const readLog = (cluster: LogCluster, topic: string, fetchBytes = FETCH_LOG_BYTES): LogReader => {
  leaveHeadersEncoded()
  repairAbortedFilter()
  const fetch = async (partition: number, from: number): Promise<FetchedLog> => {
    const wanted = { partition, fetchOffset: String(from), maxBytes: fetchBytes }
    const answer = cluster.onLeader(partition, leader =>
      leader.fetch({
        replicaId: -1,
        isolationLevel: READ_COMMITTED,
        maxWaitTime: FETCH_LOG_WAIT_MS,
        minBytes: 1,
        maxBytes: fetchBytes,
        topics: [{ topic, partitions: [wanted] }],
      }),
    )
    const { responses } = await withRight('Read', `topic ${topic}`, answer).catch((error: unknown) => {
      if (!isOutOfRange(error)) throw error
      throw deleted(`does not have offset ${from}, which it had`, { topic, partition, offset: from })
    })
    const [fetched] = responses[0]?.partitions ?? []
    if (fetched === undefined) throw new Error('a fetch without its partition')
    return fetched
  }
  return {
    topic,
    read: async (partition, from) => {
      for (let attempt = 1; ; attempt++) {
        const fetched = await fetch(partition, from)
        const end = Number(fetched.lastStableOffset ?? fetched.highWatermark)
        const entries = entriesOf(fetched, from, { topic, partition })
        if (entries.length > 0 || from >= end) return { entries, end }
        if (attempt === EMPTY_ATTEMPTS) {
          throw deleted(`has nothing at offset ${from}, and goes on to ${end}`, { topic, partition, offset: from })
        }
        await sleep(EMPTY_RETRY_MS)
      }
    },
  }
}

type Offset = { readonly topic: string; readonly partition: number; readonly offset: number }

const deleted = (what: string, where: Offset): StopError =>
  new StopError('records_deleted', `partition ${where.partition} of ${where.topic} ${what}`, where)

const isOutOfRange = (error: unknown): boolean =>
  error instanceof kafkajs.KafkaJSError && 'type' in error && error.type === 'OFFSET_OUT_OF_RANGE'

/** @throws StopError `records_deleted` that names the first missing offset */
const entriesOf = ({ messages }: FetchedLog, from: number, where: Pick<Offset, 'topic' | 'partition'>): LogEntry[] => {
  const entries: LogEntry[] = []
  let next = from
  for (const { offset, timestamp = '-1', key, value, headers, isControlRecord, batchContext } of messages) {
    // A fetch brings the whole batch that has the offset.
    if (Number(offset) < from) continue
    if (Number(offset) !== next) {
      throw deleted(`continues after offset ${next}, which is missing`, { ...where, offset: next })
    }
    const control = batchContext?.isControlBatch === true
    // `patch-aborted.ts` marks aborted records with `isControlRecord`.
    entries.push({
      kind: control ? 'control' : isControlRecord === true ? 'aborted' : 'record',
      offset: next++,
      timestamp: Number(timestamp),
      key,
      value,
      headers: headers instanceof EncodedHeaders ? headers : NO_HEADERS,
    })
  }
  return entries
}
