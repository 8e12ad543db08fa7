/**
 * Reads the records of one partition out of the batches that a fetch brought, only as the flow takes them.
 *
 *   fetch ──► batches as they are in the log ──► unpack, a slice at a time ──► flow
 *
 * In: the batches of a fetch, and the offset that was asked for. Out: their records in order, some 256 KiB at a time,
 *   without those that readers do not get. A batch that cannot be read comes as the records that stand for it.
 * Promises: of a partition, at most one fetch is held, and one slice of its records. Nothing is passed on while the
 *   partition is paused. Nothing is passed on that was fetched before a seek.
 * Can go wrong: a batch is not as the broker stored it: it is fetched again, and after some attempts ends the stream.
 */
import { type Batch, bytesOf, type RawRecord, type UndecodableBatch } from '../../ledger/index.ts'
import { nameOf, StopError } from '../../runtime/index.ts'
import type { FetchedBytes } from '../kafka/patch-fetch.ts'
import { CHANGED_BATCH_READS, FETCH_PARTITION_BYTES } from '../limits.ts'
import { type BatchPart, BatchReader } from './read-batch.ts'
import { batchesOf, type LogBatch, type RecordBatch } from './record-batch.ts'

export type UnpackSteps = {
  readonly topic: string
  readonly partition: number
  readonly onRecords: (batch: Batch) => void
  readonly onUndecodable: (batch: UndecodableBatch) => void
  /** A part of a large batch was decompressed. */
  readonly onUnpacked: () => void
  /** Fetches from an offset. */
  readonly fetchFrom: (offset: number) => void
  readonly onStopped: (error: StopError) => void
}

export class Unpacker {
  readonly #steps: UnpackSteps
  #isPaused = true
  /** Grows with each seek. Fetches from before it are dropped. */
  #epoch = 0
  #moved = Promise.withResolvers<void>()
  #changed = { offset: -1, reads: 0 }
  #reportedTo = -1
  /** Of the latest batch. It knows what is read, if the batch is fetched again. */
  #latest: { readonly first: number; readonly reader: BatchReader } | undefined
  /** Ends what was taken and is not passed on yet. A promise for all of them would keep a reaction for each. */
  readonly #dropTaken = new Set<() => void>()

  constructor(steps: UnpackSteps) {
    this.#steps = steps
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#wake()
  }

  /** Drops what was fetched. */
  drop(): void {
    this.#epoch++
    for (const dropTaken of this.#dropTaken) dropTaken()
    this.#dropTaken.clear()
    this.#wake()
  }

  /**
   * Takes what a fetch brought from an offset on. `end` is the offset to fetch next. `passed` resolves when everything
   * is passed on, or dropped, with the bytes of the records that were passed on.
   */
  take(from: number, fetched: FetchedBytes): { readonly end?: number; readonly passed: Promise<number> } {
    try {
      const batches = batchesOf(fetched)
      const last = batches.at(-1)?.batch.last
      const passed = this.#untilDropped(this.#passOn(from, batches))
      return { ...(last !== undefined && { end: Math.max(from, last + 1) }), passed }
    } catch (error) {
      this.#onError(error)
      return { passed: Promise.resolve(0) }
    }
  }

  /** A batch that is dropped may still be read for a while. */
  #untilDropped(passing: Promise<number>): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    const drop = (): void => resolve(0)
    this.#dropTaken.add(drop)
    void passing.then(resolve, reject).finally(() => this.#dropTaken.delete(drop))
    return promise
  }

  async #passOn(from: number, batches: readonly LogBatch[]): Promise<number> {
    const epoch = this.#epoch
    let bytes = 0
    try {
      for await (const batch of this.#read(from, batches)) {
        while (this.#isPaused && epoch === this.#epoch) await this.#moved.promise
        if (epoch !== this.#epoch) break
        for (const record of batch.records) bytes += bytesOf(record)
        this.#steps.onRecords(batch)
      }
    } catch (error) {
      if (epoch === this.#epoch) this.#onError(error)
    }
    return bytes
  }

  /** While the last record before the latest batch is verified, the reader of the latest one stays. */
  #readerOf(batch: RecordBatch): BatchReader {
    if (this.#latest?.reader.isOf(batch)) return this.#latest.reader
    const reader = new BatchReader(batch, this.#steps.onUnpacked)
    if (this.#latest === undefined || batch.first >= this.#latest.first) this.#latest = { first: batch.first, reader }
    return reader
  }

  async *#read(start: number, batches: readonly LogBatch[]): AsyncGenerator<Batch> {
    let from = start
    let next = start
    let gathered = new RecordsToPassOn(start)
    for (const { kind, batch } of batches) {
      if (!batch.isIntact) {
        if (next > from) yield gathered.upTo(next)
        throw new ChangedBatch(next)
      }
      // A fetch brings the whole batch that has the offset.
      if (batch.last < next) continue
      if (batch.first > next) return yield { ...gathered.upTo(next), missing: next }
      const reader = this.#readerOf(batch)
      // A batch may take seconds to read: the records before it do not wait for it. A result has records of one leader
      // only.
      if ((batch.codec !== 0 && gathered.bytes > 0) || (next > from && gathered.epoch !== batch.epoch)) {
        yield gathered.upTo(next)
        gathered = new RecordsToPassOn(next)
        from = next
      }
      try {
        while (next <= batch.last) {
          // Some MiB of records, each offset once, and none before the whole batch was readable. If it is not, records
          // stand for it that are parked.
          const part = kind === 'record' ? await reader.read(next) : await passedOver(batch, reader, next)
          this.#report(part)
          for (const record of part.records) {
            gathered.add(record, batch)
            if (gathered.bytes < FETCH_PARTITION_BYTES) continue
            yield gathered.upTo(record.offset + 1)
            from = record.offset + 1
            gathered = new RecordsToPassOn(from)
          }
          gathered.sawBatch(batch)
          next = part.end
          if (part.missing !== undefined) return yield { ...gathered.upTo(next), missing: next }
        }
      } finally {
        // Also of a batch that is dropped before its end.
        reader.close()
      }
    }
    if (next > from) yield gathered.upTo(next)
    // The broker has nothing from this offset on, and no error: it is a hole.
    if (next === start && batches.length > 0) yield { ...gathered.upTo(start), missing: start }
  }

  /** Once for each batch, unless it is read again. */
  #report({ undecodable }: BatchPart): void {
    if (undecodable === undefined || undecodable.last < this.#reportedTo) return
    this.#reportedTo = undecodable.last + 1
    this.#steps.onUndecodable(undecodable)
  }

  #onError(error: unknown): void {
    if (error instanceof ChangedBatch) this.#readAgain(error.offset)
    else this.#steps.onStopped(error instanceof StopError ? error : new StopError('defect', nameOf(error)))
  }

  #readAgain(offset: number): void {
    const { topic, partition, fetchFrom, onStopped } = this.#steps
    const reads = this.#changed.offset === offset ? this.#changed.reads + 1 : 1
    this.#changed = { offset, reads }
    const stop = () =>
      new StopError('batch_changed', `partition ${partition} of ${topic}`, { topic, partition, offset })
    if (reads < CHANGED_BATCH_READS) fetchFrom(offset)
    else onStopped(stop())
  }

  #wake(): void {
    this.#moved.resolve()
    this.#moved = Promise.withResolvers()
  }
}

/** The checksum of a batch is wrong. */
class ChangedBatch extends Error {
  readonly offset: number
  constructor(offset: number) {
    super('a batch was changed')
    this.offset = offset
  }
}

/**
 * A control batch, or an aborted one: nobody gets its records. It is read only if it states fewer records than offsets:
 * then the log was compacted, and it has a hole; or nobody can read it.
 */
const passedOver = async (
  { first, last, count }: RecordBatch,
  reader: BatchReader,
  next: number,
): Promise<BatchPart> => {
  if (count === last - first + 1) return { records: [], end: last + 1 }
  const { end, missing } = await reader.read(next)
  return { records: [], end, ...(missing !== undefined && { missing }) }
}

/** Records of consecutive batches of the log, until they are passed on together as one `Batch`. */
class RecordsToPassOn {
  readonly #from: number
  readonly #records: RawRecord[] = []
  #isTransaction = false
  #last: RecordBatch | undefined
  bytes = 0

  constructor(from: number) {
    this.#from = from
  }

  add(record: RawRecord, batch: RecordBatch): void {
    this.#records.push(record)
    this.bytes += bytesOf(record)
    this.sawBatch(batch)
  }

  get epoch(): number | undefined {
    return this.#last?.epoch
  }

  sawBatch(batch: RecordBatch): void {
    this.#last = batch
    this.#isTransaction ||= batch.isTransactional
  }

  upTo(end: number): Batch {
    const { epoch } = this
    const batch = { from: this.#from, end, records: this.#records, ...(epoch !== undefined && { epoch }) }
    if (this.#isTransaction) return { ...batch, appended: 'transaction' }
    const { appended, max } = this.#last?.time ?? NO_TIME
    return appended ? { ...batch, appended: { offset: end - 1, time: Number(max) } } : batch
  }
}

const NO_TIME = { appended: false, max: 0n }
