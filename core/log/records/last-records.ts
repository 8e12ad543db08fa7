/**
 * Reads the last known record of every partition of a topic again, and on to the position, without a consumer group.
 * In: how far each partition was read. Out: nothing, if the log has each of these records at its offset, and no record
 * between it and the position.
 * Promises: the requests go over connections of their own, so a consumer is not moved, and its fetches go on. Few
 *   records are read at a time, however many partitions there are. With a topic id, nothing of another topic is read.
 * Can go wrong: the log is another one, or has lost records (`source_changed`, `records_deleted`). Kafka does not
 *   answer, or a partition has no leader (retries, then its error).
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type GenerationBody, isLastRecord, type KnownRecord, sourceChanged } from '../kafka/source.ts'
import { FETCH_PARTITION_BYTES } from '../limits.ts'
import type { LogCluster } from './open-cluster.ts'
import { type LogReader, type Pause, readLog, readUntilFound } from './read-log.ts'

/** In the order of the partitions. */
export type KnownRecords = readonly KnownRecord[]

/** Opens connections to a topic. */
export type OpenLog = (topic: string, signal: AbortSignal) => Promise<LogCluster>

/** Records that are read at the same time. Each comes with its whole batch. */
const READ_AT_ONCE = 4

export type LastRecordReader = {
  /**
   * @param onFurther something after a last known record was read, of any partition
   * @throws StopError `source_changed`, `records_deleted`; the error of the Kafka client
   */
  readonly verify: (known: KnownRecords, onFurther?: () => void) => Promise<void>
  /** As `logEnds` of the cluster. @throws the error of the client */
  readonly logEnds: (partitions: readonly number[]) => Promise<ReadonlyMap<number, number>>
  /** Closes the connections. The next verification opens new ones. */
  readonly close: () => Promise<void>
}

/** The offset up to which a known record and its position say what the log has. */
const endOf = ({ position, last }: KnownRecord): number => Math.max(position, last === null ? 0 : last.offset + 1)

/** Between these offsets a partition had no record, and a leader of this epoch appended what is before `end`. */
type WithoutRecord = { readonly from: number; readonly end: number; readonly epoch: number | undefined }

/**
 * Reads a partition again from its last known record to the position. After that record there were only aborted and
 * control records, usually none. Returns the first offset at which the log has something else now, or nothing.
 * @param rest reads what comes after that record: an aborted transaction may be long
 * @param found by partition, what was read already. It is not read again while a leader of the same epoch appended its
 *   end: after a loss there is a later leader, and each epoch has one leader, which appends in order.
 */
export const firstChanged = async (
  log: LogReader,
  partition: number,
  known: KnownRecord,
  pause: Pause,
  rest = log,
  found = new Map<number, WithoutRecord>(),
): Promise<number | undefined> => {
  const { last } = known
  const end = endOf(known)
  if (last !== null) {
    const [entry] = (await readUntilFound(log, partition, last.offset, pause)).entries
    if (entry?.kind !== 'record' || !isLastRecord(last, entry)) return last.offset
  }
  const from = last === null ? 0 : last.offset + 1
  const before = found.get(partition)
  let [offset, epoch] = [from, before?.epoch]
  if (before?.from === from && before.end <= end) {
    const atEnd = await log.read(partition, before.end - 1)
    if (atEnd.epoch === epoch && atEnd.entries[0]?.kind !== 'record') offset = before.end
  }
  while (offset < end) {
    const part = await readUntilFound(rest, partition, offset, pause)
    if (part.entries.length === 0) return offset
    const record = part.entries.find(entry => entry.offset < end && entry.kind === 'record')
    if (record !== undefined) return record.offset
    offset += part.entries.length
    epoch = part.epoch
  }
  if (from < end) found.set(partition, { from, end, epoch })
  return undefined
}

/**
 * Reads last known records of a topic by connections of its own, which stay open until something fails.
 * @param pause waits between two reads of a record that is not found
 */
export const createLastRecordReader = (
  { topic, topic_id }: Pick<GenerationBody, 'topic' | 'topic_id'>,
  open: OpenLog,
  signal: AbortSignal,
  pause: Pause = sleep,
): LastRecordReader => {
  /** Another cluster has nothing of `found`, which goes with the connections. */
  type Opened = {
    readonly cluster: Promise<LogCluster>
    readonly abort: AbortController
    readonly found: Map<number, WithoutRecord>
  }
  let opened: Opened | undefined
  const close = async (): Promise<void> => {
    const closing = opened
    opened = undefined
    closing?.abort.abort()
    await closing?.cluster.then(cluster => cluster.disconnect()).catch(() => undefined)
  }
  const openAgain = (): Opened => {
    const abort = new AbortController()
    return { abort, cluster: open(topic, AbortSignal.any([signal, abort.signal])), found: new Map() }
  }
  const verify = async (known: KnownRecords, onFurther = () => {}): Promise<void> => {
    const waiting = known.flatMap((of, partition) => (endOf(of) === 0 ? [] : [{ partition, of }]))
    if (waiting.length === 0) return
    opened ??= openAgain()
    const { found } = opened
    const cluster = await opened.cluster
    // One byte: the broker sends the whole batch of the record, and no other.
    const log = readLog(cluster, topic, 1, topic_id, pause)
    const ahead = readLog(cluster, topic, FETCH_PARTITION_BYTES, topic_id, pause)
    const read: LogReader['read'] = async (partition, from) => {
      const part = await ahead.read(partition, from)
      if (part.entries.length > 0) onFurther()
      return part
    }
    const rest = { ...ahead, read }
    const readWaiting = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const { partition, of } = next
        // Without a topic id, a topic made anew has the same connections, and its first leader the same epoch.
        const offset = await firstChanged(log, partition, of, pause, rest, topic_id ? found : undefined)
        if (offset !== undefined) throw sourceChanged(topic, partition, of.last, offset)
      }
    }
    await Promise.all(Array.from({ length: READ_AT_ONCE }, readWaiting))
  }
  const orClose = async <Answer>(asked: Promise<Answer>): Promise<Answer> => {
    try {
      return await asked
    } catch (error) {
      await close()
      throw error
    }
  }
  return {
    verify: (known, onFurther) => orClose(verify(known, onFurther)),
    logEnds: async partitions => {
      // Connections that are opened after the stop would be closed by nobody.
      signal.throwIfAborted()
      opened ??= openAgain()
      return orClose(opened.cluster.then(cluster => cluster.logEnds(partitions)))
    },
    close,
  }
}
