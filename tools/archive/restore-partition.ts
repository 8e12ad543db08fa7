/**
 * Restores one partition.
 *
 * In: the archive of a partition, and a partition that is empty or has the beginning of that archive. Out: the same
 *   records at the same offsets with the same times.
 * Promises: what is in the partition is compared with the archive before anything is appended, so that a restore
 *   continues after a kill at any moment, and never appends to another log. In the end all of it is compared again.
 * Can go wrong: somebody else appends meanwhile. The offset of the next record shows it, and this partition gets no
 *   more records.
 */

import { bytesOfAll } from '../../core/ledger/index.ts'
import { BATCH_TIME_SPAN, type LogAppender, type LogEntry, type LogReader } from '../../core/log/index.ts'
import { StopError } from '../../core/runtime/index.ts'
import { CommandError } from '../failures.ts'
import { EMPTY_READS_MAX, RESTORE_BYTES, SMALL_SEGMENT_BYTES } from '../limits.ts'

export type PartitionRestore = {
  readonly archived: LogReader
  readonly log: LogReader
  readonly appender: LogAppender
  readonly partition: number
  /** Of the archive. */
  readonly end: number
  /** Records of one batch at most. */
  readonly batchRecords: number
  /** Called with the number of offsets that are done, and awaited: it keeps to the limit of the rate. */
  readonly onDone: (offsets: number) => Promise<void>
  readonly signal: AbortSignal
}

/** The log is that of the archive, and goes on after its end. */
export class LongerThanArchive extends CommandError {
  constructor(where: string, offset: number) {
    super(`${where} has a record at offset ${offset}: the archive ends there`)
  }
}

/** The log has something else than the archive. */
export class DiffersFromArchive extends CommandError {
  constructor(where: string, offset: number) {
    super(`${where} differs from the archive at offset ${offset}`)
  }
}

/**
 * Compares the log with the archive, at least up to an offset. Returns the offset up to which they are equal.
 * @throws LongerThanArchive, DiffersFromArchive that name the first such offset; StopError if the log ends before
 */
export const compareWithArchive = async (
  { archived, log, partition, end, onDone, signal }: Omit<PartitionRestore, 'appender' | 'batchRecords'>,
  upTo: number,
): Promise<number> => {
  const where = `partition ${partition} of ${log.topic}`
  let offset = 0
  let wanted: readonly LogEntry[] = []
  let index = 0
  let emptyReads = 0
  while (offset < upTo) {
    signal.throwIfAborted()
    const { entries } = await log.read(partition, offset)
    // A new leader may say for a moment that the log ends earlier.
    emptyReads = entries.length === 0 ? emptyReads + 1 : 0
    if (emptyReads === EMPTY_READS_MAX) {
      throw new StopError('records_deleted', `${where} ends at offset ${offset}: it had records up to ${upTo}`)
    }
    for (const got of entries) {
      if (offset >= end) throw new LongerThanArchive(where, offset)
      if (index === wanted.length) {
        wanted = (await archived.read(partition, offset)).entries
        index = 0
      }
      if (!isRestored(wanted[index++], got)) throw new DiffersFromArchive(where, offset)
      offset++
    }
    await onDone(entries.length)
  }
  return offset
}

/** Holes are equal whatever is in them. */
const isRestored = (expected: LogEntry | undefined, got: LogEntry): boolean => {
  if (expected === undefined) return false
  if (expected.kind !== 'record' || got.kind !== 'record') return expected.kind !== 'record' && got.kind !== 'record'
  return (
    expected.offset === got.offset &&
    expected.timestamp === got.timestamp &&
    areEqual(expected.key, got.key) &&
    areEqual(expected.value, got.value) &&
    expected.headers.bytes.equals(got.headers.bytes)
  )
}

const areEqual = (a: Buffer | null, b: Buffer | null): boolean => (a === null || b === null ? a === b : a.equals(b))

/**
 * Appends everything of the archive from an offset on. Meanwhile it reads the next part, if this one is small: all
 * partitions are appended at once, and two large parts of each would fill memory.
 * @throws CommandError if somebody else appends meanwhile
 */
export const appendFrom = async (restore: PartitionRestore, from: number): Promise<void> => {
  const { archived, partition, end, batchRecords, signal } = restore
  const read = (offset: number): ReturnType<LogReader['read']> => {
    const reading = archived.read(partition, offset)
    // Thrown in its turn.
    reading.catch(() => undefined)
    return reading
  }
  let reading: ReturnType<LogReader['read']> | undefined
  for (let offset = from; offset < end; ) {
    const { entries } = await (reading ?? read(offset))
    reading = bytesOfAll(entries) <= SMALL_SEGMENT_BYTES ? read(offset + entries.length) : undefined
    for (const run of runsOf(entries, batchRecords)) {
      signal.throwIfAborted()
      await appendRun(restore, run)
      await restore.onDone(run.length)
    }
    offset += entries.length
  }
}

const appendRun = async ({ log, appender, partition }: PartitionRestore, run: readonly LogEntry[]): Promise<void> => {
  const [first] = run
  if (first === undefined) return
  const spoiled = 'Delete and create the topic, and run the same again'
  let expected = first.offset
  let got: number
  if (first.kind === 'record') {
    const appended = await appender.append(partition, run)
    got = appended.base
    if (!appended.keptTimes) {
      const what = `Kafka gave records of partition ${partition} of ${log.topic} other times`
      throw new CommandError(`${what}: message.timestamp.type was changed meanwhile. ${spoiled}`)
    }
  } else {
    expected = first.offset + run.length
    got = await appender.appendHole(partition, expected, first.timestamp)
  }
  if (got === expected) return
  const what = `partition ${partition} of ${log.topic}: expected offset ${expected}, got ${got}`
  throw new CommandError(`${what}: somebody else publishes to it. Stop all publishers. ${spoiled}`)
}

/** Splits entries into runs of records, each for one batch, and runs of holes. */
function* runsOf(entries: readonly LogEntry[], batchRecords: number): Generator<readonly LogEntry[]> {
  let run: LogEntry[] = []
  let bytes = 0
  for (const entry of entries) {
    const [first] = run
    const size = (entry.key?.length ?? 0) + (entry.value?.length ?? 0) + entry.headers.bytes.length
    const isSame = first !== undefined && (first.kind === 'record') === (entry.kind === 'record')
    const isFull =
      entry.kind === 'record' &&
      first !== undefined &&
      (run.length === batchRecords ||
        bytes + size > RESTORE_BYTES ||
        Math.abs(entry.timestamp - first.timestamp) >= BATCH_TIME_SPAN)
    if (run.length > 0 && (!isSame || isFull)) {
      yield run
      run = []
      bytes = 0
    }
    run.push(entry)
    bytes += size
  }
  if (run.length > 0) yield run
}
