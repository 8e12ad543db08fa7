/**
 * Copies a topic of events into one with more partitions, and proves that the copy is whole.
 *
 * In: both topics. The new one is empty, or an earlier run has begun to fill it. Out: each record once in the new
 *   topic, with its time, key, headers and value. The records of an organization are in their order.
 * Promises: a run first compares all records of the new topic with the old one, and then appends. The records that are
 *   there say how far an earlier run came. So a run that was killed is continued, and no record is there twice. Each
 *   appended record is read again and compared.
 * Memory: one part of the log for each partition (`fetchBytesAt`: smaller if there are many), batches of
 *   FETCHED_AT_ONCE_BYTES in all, and a digest for each pair of both.
 * Can go wrong: the new topic has something else: nothing is appended any more. Another process copies: `takeOver` of
 *   the transactions says so.
 */
import { createHash } from 'node:crypto'
import type { RawRecord } from '../../core/ledger/index.ts'
import {
  BATCH_TIME_SPAN,
  type LogEntry,
  type LogReader,
  type LogTransactions,
  mergedByTime,
} from '../../core/log/index.ts'
import { encodeEntry } from '../archive/segment.ts'
import { CommandError } from '../failures.ts'
import { EMPTY_READS_MAX, FETCHED_AT_ONCE_BYTES, RESTORE_BYTES } from '../limits.ts'
import { formerPartitionOf, newPartitionOf, type PartitionNumbers } from './new-partition.ts'

export type CopySteps = {
  readonly from: LogReader
  readonly to: LogReader
  readonly growth: PartitionNumbers
  readonly transactions: LogTransactions
  /** Records of one batch at most. */
  readonly batchRecords: number
  /** Called with a number of records that were compared or appended, and awaited: it keeps to the limit of the rate. */
  readonly onDone: (records: number) => Promise<void>
  readonly signal: AbortSignal
}

/** Next offsets by partition. The records before them in one topic are exactly those in the other one. */
export type CopiedTo = { readonly from: readonly number[]; readonly to: readonly number[] }

export type Copy = {
  /** Appends what the new topic lacks, up to the present end. Returns the number of records. */
  readonly run: () => Promise<number>
  /** After a run. */
  readonly reached: () => CopiedTo
}

/** Of the records that went from one partition to another one, in order. */
type Tally = { records: number; digest: string }

const addToTally = (tally: Tally, record: RawRecord): void => {
  const bytes = encodeEntry({ ...record, kind: 'record', offset: 0 })
  tally.records++
  tally.digest = createHash('sha256').update(tally.digest).update(bytes).digest('hex')
}

/** @throws CommandError if the new topic has anything else than the beginning of the old one */
export const openCopy = async (steps: CopySteps): Promise<Copy> => {
  const { from, to, growth, transactions, batchRecords, onDone, signal } = steps
  const { before, after } = growth
  const pairs = () => Array.from({ length: before * after }, (): Tally => ({ records: 0, digest: '' }))
  /** The records of the old topic, and those that the new topic has. */
  const [given, there] = [pairs(), pairs()]
  const tallyOf = (tallies: readonly Tally[], was: number, is: number): Tally => {
    const tally = tallies[was * after + is]
    if (tally === undefined) throw new Error('a pair of partitions without a tally')
    return tally
  }
  const [nextFrom, nextTo] = [zeros(before), zeros(after)]

  const differs = (is: number, why: string): CommandError =>
    new CommandError(`partition ${is} of ${to.topic} ${why}. ${OTHER_CONTENT}`)
  const compare = (was: number, is: number): void => {
    if (tallyOf(given, was, is).digest === tallyOf(there, was, is).digest) return
    throw differs(is, `has other records than partition ${was} of ${from.topic}, or in another order`)
  }

  /** Reads a partition of the new topic to its end. */
  const readThere = async (is: number): Promise<void> => {
    for (;;) {
      signal.throwIfAborted()
      const { entries } = await to.read(is, nextTo[is] ?? 0)
      if (entries.length === 0) return
      for (const entry of entries) {
        nextTo[is] = entry.offset + 1
        if (entry.kind !== 'record') continue
        const was = formerPartitionOf(entry, is, growth)
        if (was === undefined)
          throw differs(is, `has a record at offset ${entry.offset} that ${from.topic} cannot have`)
        addToTally(tallyOf(there, was, is), entry)
      }
      await onDone(entries.length)
    }
  }

  /** Finds the first record of a partition that the new topic lacks, and compares all others. */
  const compareOne = async (was: number): Promise<void> => {
    const left = () => range(after).filter(is => tallyOf(given, was, is).records < tallyOf(there, was, is).records)
    let firstMissing: number | undefined
    for (let offset = 0; left().length > 0; ) {
      signal.throwIfAborted()
      const { entries } = await from.read(was, offset)
      const [short] = left()
      if (entries.length === 0 && short !== undefined) throw differs(short, `has more records than ${from.topic}`)
      for (const entry of entries) {
        if (firstMissing === undefined) nextFrom[was] = entry.offset
        offset = entry.offset + 1
        if (entry.kind !== 'record') continue
        const is = newPartitionOf(entry, was, growth)
        const [tally, wanted] = [tallyOf(given, was, is), tallyOf(there, was, is)]
        if (tally.records === wanted.records) {
          firstMissing ??= entry.offset
          continue
        }
        // A transaction has the next records of all partitions: nothing is there after a record that is not.
        if (firstMissing !== undefined) {
          const missing = `offset ${firstMissing} of partition ${was} of ${from.topic}`
          throw differs(is, `has records after the one at ${missing}, which is missing`)
        }
        addToTally(tally, entry)
        if (tally.records === wanted.records) compare(was, is)
      }
      if (firstMissing === undefined) nextFrom[was] = offset
      await onDone(entries.length)
    }
  }

  const run = async (): Promise<number> => {
    let appended = 0
    let [batches, bytes, inAll] = [new Map<number, LogEntry[]>(), new Map<number, number>(), 0]
    const flush = async (): Promise<void> => {
      if (batches.size === 0) return
      const records = [...batches.values()].reduce((sum, batch) => sum + batch.length, 0)
      await transactions.append(batches, ({ partition, keptTimes }) => {
        if (keptTimes) return
        const what = `Kafka gave records of partition ${partition} of ${to.topic} other times`
        throw new CommandError(`${what}: message.timestamp.type was changed meanwhile. Run the same again`)
      })
      appended += records
      ;[batches, bytes, inAll] = [new Map(), new Map(), 0]
      await onDone(records)
    }
    const take = async (was: number, entry: LogEntry): Promise<void> => {
      if (entry.kind !== 'record') return
      const is = newPartitionOf(entry, was, growth)
      const size = sizeOf(entry)
      const isFull = inAll + size > FETCHED_AT_ONCE_BYTES
      if (isFull || !fits(batches.get(is) ?? [], bytes.get(is) ?? 0, entry, batchRecords)) await flush()
      const batch = batches.get(is) ?? []
      batch.push(entry)
      batches.set(is, batch)
      bytes.set(is, (bytes.get(is) ?? 0) + size)
      inAll += size
      addToTally(tallyOf(given, was, is), entry)
    }
    for await (const [was, entry] of byTime(from, nextFrom, signal)) {
      await take(was, entry)
      nextFrom[was] = entry.offset + 1
    }
    await flush()
    await readBack()
    return appended
  }

  /** Reads what was appended, and compares it. */
  const readBack = async (): Promise<void> => {
    const lacks = () => given.some(({ records }, pair) => (there[pair]?.records ?? 0) < records)
    // A new leader may say for a moment that the log ends earlier.
    for (let reads = 0; ; reads++) {
      await Promise.all(range(after).map(readThere))
      if (!lacks()) break
      if (reads === EMPTY_READS_MAX) throw new CommandError(`${to.topic} has lost records that Kafka had acknowledged`)
    }
    for (const was of range(before)) {
      for (const is of range(after)) {
        if (tallyOf(there, was, is).records > tallyOf(given, was, is).records) {
          throw differs(
            is,
            `has more records than ${from.topic}: another run copies to it, or somebody publishes to it`,
          )
        }
        compare(was, is)
      }
    }
  }

  await transactions.takeOver()
  await Promise.all(range(after).map(readThere))
  await Promise.all(range(before).map(compareOne))
  return { run, reached: () => ({ from: [...nextFrom], to: [...nextTo] }) }
}

const OTHER_CONTENT =
  'Publishers must not use it before the swap. If it was swapped to before a snapshot was restored, never delete it: docs/generations.md, "A snapshot from before grow --swap". If only earlier tries are in it, delete it, and run the same again'

const zeros = (length: number): number[] => Array.from({ length }, () => 0)
const range = (length: number): number[] => Array.from({ length }, (_, index) => index)
const sizeOf = ({ key, value, headers }: LogEntry): number =>
  (key?.length ?? 0) + (value?.length ?? 0) + headers.bytes.length

/** Whether a record may be appended in one batch with these. */
const fits = (batch: readonly LogEntry[], bytes: number, entry: LogEntry, batchRecords: number): boolean => {
  const [first] = batch
  if (first === undefined) return true
  const span = Math.abs(entry.timestamp - first.timestamp)
  return batch.length < batchRecords && bytes + sizeOf(entry) <= RESTORE_BYTES && span < BATCH_TIME_SPAN
}

/**
 * Yields all entries from these offsets on, up to the present ends: of each partition in its order, and over all
 * partitions by time. So a new partition has its records nearly in the order of their times.
 */
const byTime = (log: LogReader, from: readonly number[], signal: AbortSignal) =>
  mergedByTime(
    from.map((offset, partition) => toPresentEnd(log, partition, offset, signal)),
    ({ timestamp }) => timestamp,
  )

/** Yields the entries of a partition from an offset on. */
async function* toPresentEnd(
  log: LogReader,
  partition: number,
  from: number,
  signal: AbortSignal,
): AsyncGenerator<readonly LogEntry[]> {
  let end: number | undefined
  for (let offset = from; offset < (end ?? Number.POSITIVE_INFINITY); ) {
    signal.throwIfAborted()
    const read = await log.read(partition, offset)
    // Publishers may be faster than the copy: what comes now is for the next run.
    end ??= read.end
    const present = end
    if (read.entries.length === 0) return
    yield read.entries.filter(entry => entry.offset < present)
    offset = (read.entries.at(-1)?.offset ?? present) + 1
  }
}
