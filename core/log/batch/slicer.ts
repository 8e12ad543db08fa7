/**
 * Cuts the records of a batch into slices, in one run through its decompressed bytes.
 *
 * In: a batch, and where a record begins in it. Out: slices of the records from there on, one after the other.
 * Promises: between two slices it holds what the codec needs, one part of the stream, and no record.
 * Can go wrong: the batch cannot be read (`Undecodable`).
 */
import { BATCH_BYTES_MAX, BATCH_RECORD_BYTES_MAX } from '../../../schemas/limits.ts'
import { bytesOf, type RawRecord } from '../../ledger/index.ts'
import { decompress } from './decompress.ts'
import { newLayout, type RecordBatch, readLayout, recordOf, VarintReader } from './record-batch.ts'
import { Undecodable } from './undecodable.ts'

/** Bytes and records of a slice. */
export const SLICE_BYTES = 8 * 1024 * 1024
export const SLICE_RECORDS = 10_000

/** Where a record begins: its index in the batch, its first decompressed byte, the distance of the record before it. */
export type Begin = { readonly index: number; readonly position: number; readonly before: number }
export const FIRST: Begin = { index: 0, position: 0, before: -1 }

/** `last` is the last record of the slice. */
export type Slice = {
  readonly records: readonly RawRecord[]
  readonly isLast: boolean
  readonly last?: Begin & { readonly offset: number }
}

export class Slicer {
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
    const slice = new Gathering()
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

  #readHeld(from: number, slice: Gathering, isToEnd: boolean): void {
    const [part = NONE] = this.#parts
    const bytes = this.#parts.length === 1 ? part : Buffer.concat(this.#parts)
    const rest = bytes.subarray(this.#readAll(bytes, from, slice, isToEnd))
    // The rest must not keep the records before it in memory: the batch itself is held in any case.
    const isToKeep = slice.isFull && !isToEnd && this.#batch.codec !== 0
    this.#parts = rest.length > 0 ? [isToKeep ? Buffer.from(rest) : rest] : []
    this.#held = rest.length
  }

  /** Reads all whole records, or those of the slice. Returns the number of bytes that it has read. */
  #readAll(bytes: Buffer, from: number, slice: Gathering, isToEnd: boolean): number {
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
      if (offset >= from && !slice.isFull && !slice.hasNoRoomFor(size)) {
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

/** The records of a slice. */
class Gathering {
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
