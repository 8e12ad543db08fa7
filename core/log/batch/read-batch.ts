/**
 * Reads the records of a batch, in slices: a few kilobytes can decompress to gigabytes.
 *
 * In: a batch, and an offset. Out: its records from there on, as many as a slice holds, at least one. A batch that
 *   cannot be read is returned as records that stand for it (`undecodable-batch.ts`).
 * Promises: no record is returned before the whole batch was read once: a batch is read in whole, or parked in whole.
 *   After that, all slices come out of one run through the batch (`slicer.ts`). It stays open between two slices, and
 *   its codec holds 8 MiB at most. A codec that needs more is closed after each slice: no partition waits for another
 *   one that is paused. The result depends on the bytes of the batch alone.
 */
import { describeBatch, type RawRecord, UNDECODABLE_BATCH_HEADER, type UndecodableBatch } from '../../ledger/index.ts'
import { createWeightedSemaphore } from '../../runtime/index.ts'
import { encodeHeaders } from '../kafka/encoded-headers.ts'
import { memoryFor } from './decompress.ts'
import type { RecordBatch } from './record-batch.ts'
import { FIRST, SLICE_RECORDS, type Slice, Slicer } from './slicer.ts'
import { Undecodable } from './undecodable.ts'

const MiB = 1024 * 1024

/** Bytes that codecs may need at the same time, and the bytes that are not worth counting. */
const CODEC_BYTES = 160 * MiB
const CODEC_BYTES_FREE = 8 * MiB

const codecMemory = createWeightedSemaphore(CODEC_BYTES)

/** Decompressed bytes that count as progress. Each chunk counts for some more: it may be empty. */
const PROGRESS_BYTES = 1 * MiB
const CHUNK_BYTES = 1024
/** Readers that wait for the memory of codecs: the progress of others counts as theirs. */
const waiting = new Set<() => void>()

export type BatchPart = {
  /** From the asked offset on, each offset once. */
  readonly records: readonly RawRecord[]
  /** The offset after the part. */
  readonly end: number
  /** The first offset that the batch lacks: the log was compacted. The records before it are there. */
  readonly missing?: number
  /** The batch, if it cannot be read. */
  readonly undecodable?: UndecodableBatch
}

export class BatchReader {
  readonly #batch: RecordBatch
  readonly #onProgress: () => void
  /** The last record of the last slice. */
  #last: NonNullable<Slice['last']>
  #isVerified = false
  #undecodable: UndecodableBatch | undefined
  #reading: Promise<unknown> = Promise.resolve()
  /** Stands after the last slice. */
  #open: Slicer | undefined
  /** The last slice that was begun, and the bytes that were decompressed for it. */
  #furthest = { from: -1, bytes: 0 }

  /** @param onProgress called again and again while the batch is decompressed, which may take minutes */
  constructor(batch: RecordBatch, onProgress: () => void = () => undefined) {
    this.#batch = batch
    this.#onProgress = onProgress
    this.#last = { ...FIRST, offset: batch.first }
  }

  /** Whether this is the batch that is read: another log can have another one at the same offset. */
  isOf({ first, last, codec, count, time, payload }: RecordBatch): boolean {
    const ours = this.#batch
    const isSameTime =
      ours.time.appended === time.appended && ours.time.base === time.base && ours.time.max === time.max
    const isSame = ours.first === first && ours.last === last && ours.codec === codec && ours.count === count
    return isSame && isSameTime && ours.payload.equals(payload)
  }

  /**
   * Reads after the reads before it: a batch that is fetched again while it is read is not read twice.
   * @param from an offset of the batch
   */
  read(from: number): Promise<BatchPart> {
    const read = this.#reading.then(() => this.#read(from))
    this.#reading = read.catch(() => undefined)
    return read
  }

  /** Lets go of the codec, once the reads under way are done. A later read opens it again. */
  close(): void {
    this.#reading = this.#reading.then(() => this.#close())
  }

  async #read(from: number): Promise<BatchPart> {
    const { first, last, codec } = this.#batch
    if (this.#undecodable === undefined) {
      try {
        return partOf(await this.#slice(from), from, last)
      } catch (error) {
        if (!(error instanceof Undecodable)) throw error
        this.#undecodable = { first, last, codec, reason: error.reason }
      }
    }
    return standIns(this.#batch, this.#undecodable, from)
  }

  async #slice(from: number): Promise<Slice> {
    const { codec, payload } = this.#batch
    const bytes = memoryFor(codec, payload)
    if (bytes <= CODEC_BYTES_FREE) return this.#nextSlice(from, this.#onProgress)
    waiting.add(this.#onProgress)
    const release = await codecMemory(bytes)
    waiting.delete(this.#onProgress)
    try {
      return await this.#nextSlice(from, () => {
        this.#onProgress()
        for (const tell of waiting) tell()
      })
    } finally {
      await this.#close()
      release()
    }
  }

  /** Decompresses the batch: to its end the first time, later to the end of the slice. */
  async #nextSlice(from: number, onProgress: () => void): Promise<Slice> {
    if (this.#batch.count < 0) throw new Undecodable('count_wrong')
    // A consumer that goes back reads again.
    if (this.#open && from < this.#open.next) await this.#close()
    const slicer = this.#open ?? new Slicer(this.#batch, from >= this.#last.offset ? this.#last : FIRST)
    this.#open = slicer
    let isDone = false
    try {
      const slice = await slicer.slice(from, !this.#isVerified, this.#countBytes(from, onProgress))
      isDone = slice.isLast || !this.#isVerified
      this.#isVerified = true
      if (slice.last) this.#last = slice.last
      return slice
    } catch (error) {
      isDone = true
      throw error
    } finally {
      if (isDone) await this.#close()
    }
  }

  /** A slice that is read again is no progress, until it comes further than before. */
  #countBytes(from: number, onProgress: () => void): (chunkBytes: number) => void {
    if (from > this.#furthest.from) this.#furthest = { from, bytes: 0 }
    const furthest = this.#furthest
    let bytes = 0
    return chunkBytes => {
      bytes += chunkBytes + CHUNK_BYTES
      if (from < furthest.from || bytes < furthest.bytes + PROGRESS_BYTES) return
      furthest.bytes = bytes
      onProgress()
    }
  }

  async #close(): Promise<void> {
    const open = this.#open
    this.#open = undefined
    await open?.close()
  }
}

/** Cuts a slice before the first offset that the batch lacks. Only a compacted log has such a hole. */
const partOf = ({ records, isLast }: Slice, from: number, last: number): BatchPart => {
  let next = from
  for (const { offset } of records) {
    if (offset !== next) break
    next++
  }
  const whole = records.slice(0, next - from)
  const isMissing = whole.length < records.length || (isLast && next <= last)
  return { records: whole, end: next, ...(isMissing && { missing: next }) }
}

const standIns = (batch: RecordBatch, undecodable: UndecodableBatch, from: number): BatchPart => {
  const headers = encodeHeaders([[UNDECODABLE_BATCH_HEADER, Buffer.from(describeBatch(undecodable))]])
  const timestamp = Number(batch.time.max)
  const end = Math.min(batch.last + 1, from + SLICE_RECORDS)
  const records = Array.from({ length: end - from }, (_, index): RawRecord => {
    const offset = from + index
    return { offset, timestamp, key: null, value: offset === batch.first ? batch.payload : null, headers }
  })
  return { records, end, undecodable }
}
