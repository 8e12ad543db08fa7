/**
 * Reads the records of a batch, in slices: a few kilobytes can decompress to gigabytes.
 *
 * In: a batch, and an offset. Out: its records from there on, as many as a slice holds, at least one. A batch that
 *   cannot be read is returned as records that stand for it (`UndecodableBatch`).
 * Promises: no record is returned before the whole batch was read once: a batch is read in whole, or parked in whole.
 *   After that, all slices come out of one run through the batch (`Slicer`). It stays open between two slices, and
 *   its codec holds 8 MiB at most. A codec that needs more is closed after each slice: no partition waits for another
 *   one that is paused. The result depends on the bytes of the batch alone.
 */

import { BATCH_BYTES_MAX, BATCH_RECORD_BYTES_MAX } from '../../../schemas/limits.ts'
import {
  bytesOf,
  describeBatch,
  type RawRecord,
  UNDECODABLE_BATCH_HEADER,
  type UndecodableBatch,
} from '../../ledger/index.ts'
import { createWeightedSemaphore } from '../../runtime/index.ts'
import { encodeHeaders } from '../kafka/encoded-headers.ts'
import { decompress, memoryFor } from './decompress.ts'
import { newLayout, type RecordBatch, readLayout, recordOf, Undecodable, VarintReader } from './record-batch.ts'

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

/** Bytes and records of a slice. */
export const SLICE_BYTES = 8 * 1024 * 1024
export const SLICE_RECORDS = 10_000

/** Where a record begins: its index in the batch, its first decompressed byte, the distance of the record before it. */
type Begin = { readonly index: number; readonly position: number; readonly before: number }
const FIRST: Begin = { index: 0, position: 0, before: -1 }

/** `last` is the last record of the slice. */
type Slice = {
  readonly records: readonly RawRecord[]
  readonly isLast: boolean
  readonly last?: Begin & { readonly offset: number }
}

/**
 * Cuts the records of a batch into slices, in one run through its decompressed bytes. Between two slices it holds what
 * the codec needs, one part of the stream, and no record. @throws Undecodable
 */
class Slicer {
  readonly #batch: RecordBatch
  readonly #chunks: AsyncIterator<Buffer> | Iterator<Buffer>
  readonly #layout = newLayout()
  #index: number
  #position: number
  #before: number
  /** Bytes before the first record to read. */
  #skip: number
  #total = 0
  /** Parts of which the first record is not read yet, their bytes, and the bytes that it needs. */
  #parts: Buffer[] = []
  #held = 0
  #needed = 1

  constructor(batch: RecordBatch, { index, position, before }: Begin) {
    this.#batch = batch
    this.#index = index
    this.#position = position
    this.#before = before
    this.#skip = position
    const chunks = decompress(batch.codec, batch.payload)
    this.#chunks = Symbol.asyncIterator in chunks ? chunks[Symbol.asyncIterator]() : chunks[Symbol.iterator]()
  }

  /** The first offset that it has not passed yet. */
  get next(): number {
    return this.#batch.first + this.#before + 1
  }

  /**
   * Returns the records from an offset on, as many as a slice holds, at least one.
   * @param isToEnd goes on to the end of the batch, and checks all of it; then this was the only slice
   * @param onChunk called with the bytes that were decompressed
   */
  async slice(from: number, isToEnd: boolean, onChunk: (bytes: number) => void): Promise<Slice> {
    const { count } = this.#batch
    const slice = new GrowingSlice()
    let fault: Undecodable | undefined
    const read = (): void => {
      try {
        this.#readHeld(from, slice, isToEnd)
      } catch (error) {
        if (!(error instanceof Undecodable)) throw error
        // Goes on: a batch that cannot be decompressed has that reason, wherever its parts begin.
        fault = error
        this.#parts = []
      }
    }
    if (this.#held > 0) read()
    while (isToEnd || !slice.isFull) {
      const { done, value: chunk } = await this.#chunks.next()
      if (done === true) {
        if (fault) throw fault
        if (this.#index < count) throw new Undecodable('count_wrong')
        break
      }
      onChunk(chunk.length)
      this.#total += chunk.length
      const part = this.#partOf(chunk)
      if (part.length > 0 && fault === undefined) {
        this.#parts.push(part)
        this.#held += part.length
        if (this.#held >= this.#needed) read()
      }
      if (this.#total > BATCH_BYTES_MAX) throw fault ?? new Undecodable('too_large')
    }
    if (fault) throw fault
    const { records, isFull, last } = slice
    return { records, isLast: !isFull, ...(last && { last }) }
  }

  /** Ends the decompression. */
  async close(): Promise<void> {
    this.#parts = []
    await this.#chunks.return?.()
  }

  /** Returns the bytes of a chunk that are neither skipped nor above the bound. */
  #partOf(chunk: Buffer): Buffer {
    const dropped = Math.min(this.#skip, chunk.length)
    this.#skip -= dropped
    return chunk.subarray(dropped, chunk.length - Math.max(0, this.#total - BATCH_BYTES_MAX))
  }

  #readHeld(from: number, slice: GrowingSlice, isToEnd: boolean): void {
    const [part = NONE] = this.#parts
    const bytes = this.#parts.length === 1 ? part : Buffer.concat(this.#parts)
    const rest = bytes.subarray(this.#readAll(bytes, from, slice, isToEnd))
    // The rest must not keep the records before it in memory: the batch itself is held in any case.
    const isToKeep = slice.isFull && !isToEnd && this.#batch.codec !== 0
    this.#parts = rest.length > 0 ? [isToKeep ? Buffer.from(rest) : rest] : []
    this.#held = rest.length
  }

  /** Reads all whole records, or those of the slice. Returns the number of bytes that it has read. */
  #readAll(bytes: Buffer, from: number, slice: GrowingSlice, isToEnd: boolean): number {
    const { count, first, last, time } = this.#batch
    const layout = this.#layout
    let at = 0
    while (this.#index < count) {
      const reader = new VarintReader(bytes, at)
      const size = reader.varint()
      if (size === undefined) {
        this.#needed = bytes.length - at + 1
        return at
      }
      if (size < 0) throw new Undecodable('records_malformed')
      if (size > BATCH_RECORD_BYTES_MAX) throw new Undecodable('record_too_large')
      // The records of a slice are consecutive in the batch, so each one after the first is asked for.
      if (!isToEnd && slice.hasNoRoomFor(size)) {
        this.#needed = 1
        return at
      }
      const end = reader.at + size
      if (end > bytes.length) {
        this.#needed = end - at
        return at
      }
      readLayout(bytes, reader.at, end, layout)
      if (layout.delta <= this.#before || first + layout.delta > last) throw new Undecodable('records_malformed')
      const offset = first + layout.delta
      if (offset >= from && !slice.hasNoRoomFor(size)) {
        const begin = { index: this.#index, position: this.#position, before: this.#before, offset }
        slice.add(recordOf(bytes, end, layout, first, time), begin)
      }
      this.#before = layout.delta
      this.#index++
      this.#position += end - at
      at = end
    }
    if (at < bytes.length) throw new Undecodable('count_wrong')
    this.#needed = 1
    return at
  }
}

const NONE = Buffer.alloc(0)

/** Records of one batch of the log, until they are a `Slice`. */
class GrowingSlice {
  readonly records: RawRecord[] = []
  /** Whether there was a record that found no room. */
  isFull = false
  last: Slice['last']
  #bytes = 0

  hasNoRoomFor(size: number): boolean {
    const { length } = this.records
    this.isFull ||= length > 0 && (length === SLICE_RECORDS || this.#bytes + size > SLICE_BYTES)
    return this.isFull
  }

  add(record: RawRecord, begin: NonNullable<Slice['last']>): void {
    this.records.push(record)
    this.#bytes += bytesOf(record)
    this.last = begin
  }
}
