/**
 * Reads the records of a batch, in slices: a few kilobytes can decompress to gigabytes.
 *
 * In: a batch, and an offset. Out: its records from there on, as many as a slice holds, at least one. A batch that
 *   cannot be read is returned as records that stand for it (`undecodable-batch.ts`).
 * Promises: no record is returned before the whole batch was read once: a batch is read in whole, or parked in whole.
 *   Memory is bounded by a slice, a part of the stream and what the codec needs: each slice decompresses the batch anew
 *   up to its end. The result depends on the bytes of the batch alone.
 */
import { BATCH_BYTES_MAX, BATCH_RECORD_BYTES_MAX } from '../../schemas/limits.ts'
import { bytesOf, type RawRecord } from '../event/raw-record.ts'
import { describeBatch, UNDECODABLE_BATCH_HEADER, type UndecodableBatch } from '../event/undecodable-batch.ts'
import { encodeHeaders } from '../kafka/encoded-headers.ts'
import { createWeightedSemaphore } from '../semaphore.ts'
import { decompress, memoryFor } from './decompress.ts'
import { newLayout, readLayout, recordOf, VarintReader } from './read-record.ts'
import type { RecordBatch } from './record-batch.ts'
import { Undecodable } from './undecodable.ts'

const MiB = 1024 * 1024

/** Bytes and records of a slice. */
export const SLICE_BYTES = 8 * MiB
export const SLICE_RECORDS = 10_000
/** Bytes that codecs may need at the same time, and the bytes that are not worth counting. */
const CODEC_BYTES = 160 * MiB
const CODEC_BYTES_FREE = 8 * MiB

const codecMemory = createWeightedSemaphore(CODEC_BYTES)

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

/** A record that was returned: its index in the batch, and where it begins when decompressed. */
type Found = { readonly offset: number; readonly index: number; readonly position: number; readonly before: number }
type Slice = { readonly records: readonly RawRecord[]; readonly isLast: boolean }

export class BatchReader {
  readonly #batch: RecordBatch
  /** The last record of the last slice. */
  #found: Found
  #isVerified = false
  #undecodable: UndecodableBatch | undefined
  #reading: Promise<unknown> = Promise.resolve()

  constructor(batch: RecordBatch) {
    this.#batch = batch
    this.#found = { offset: batch.first, index: 0, position: 0, before: -1 }
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
    if (bytes <= CODEC_BYTES_FREE) return this.#pass(from)
    const release = await codecMemory(bytes)
    try {
      return await this.#pass(from)
    } finally {
      release()
    }
  }

  /** Decompresses the batch: to its end the first time, later to the end of the slice. */
  async #pass(from: number): Promise<Slice> {
    const { codec, count, first, last, time, payload } = this.#batch
    if (count < 0) throw new Undecodable('count_wrong')
    let { index, position, before } = from >= this.#found.offset ? this.#found : { index: 0, position: 0, before: -1 }
    let skip = position
    let total = 0
    const slice: RawRecord[] = []
    let sliceBytes = 0
    let found: Found | undefined
    let isFull = false
    let fault: Undecodable | undefined
    // Parts of which the first record is not whole yet, their bytes, and the bytes that it needs.
    let parts: Buffer[] = []
    let held = 0
    let needed = 1
    const layout = newLayout()

    /** Reads all whole records. Returns the number of bytes that it has read. */
    const readAll = (bytes: Buffer): number => {
      let at = 0
      while (index < count) {
        const reader = new VarintReader(bytes, at)
        const size = reader.varint()
        if (size === undefined) {
          needed = bytes.length - at + 1
          return at
        }
        if (size < 0) throw new Undecodable('records_malformed')
        if (size > BATCH_RECORD_BYTES_MAX) throw new Undecodable('record_too_large')
        const end = reader.at + size
        if (end > bytes.length) {
          needed = end - at
          return at
        }
        readLayout(bytes, reader.at, end, layout)
        if (layout.delta <= before || first + layout.delta > last) throw new Undecodable('records_malformed')
        const offset = first + layout.delta
        if (offset >= from && !isFull) {
          isFull = slice.length > 0 && (slice.length === SLICE_RECORDS || sliceBytes + size > SLICE_BYTES)
          if (!isFull) {
            const record = recordOf(bytes, end, layout, first, time)
            slice.push(record)
            sliceBytes += bytesOf(record)
            found = { offset, index, position, before }
          }
        }
        before = layout.delta
        index++
        position += end - at
        at = end
      }
      if (at < bytes.length) throw new Undecodable('count_wrong')
      needed = 1
      return at
    }

    for await (const chunk of decompress(codec, payload)) {
      total += chunk.length
      const dropped = Math.min(skip, chunk.length)
      skip -= dropped
      const part = chunk.subarray(dropped, chunk.length - Math.max(0, total - BATCH_BYTES_MAX))
      if (part.length > 0 && fault === undefined) {
        parts.push(part)
        held += part.length
        if (held >= needed) {
          const bytes = parts.length === 1 ? part : Buffer.concat(parts)
          try {
            const rest = bytes.subarray(readAll(bytes))
            parts = rest.length > 0 ? [rest] : []
            held = rest.length
          } catch (error) {
            if (!(error instanceof Undecodable)) throw error
            // Goes on: a batch that cannot be decompressed has that reason, wherever its parts begin.
            fault = error
            parts = []
          }
        }
      }
      if (total > BATCH_BYTES_MAX) throw fault ?? new Undecodable('too_large')
      if (isFull && this.#isVerified) break
    }
    if (fault) throw fault
    if (index < count && !(isFull && this.#isVerified)) throw new Undecodable('count_wrong')
    this.#isVerified = true
    if (found) this.#found = found
    return { records: slice, isLast: !isFull }
  }
}

/** A batch has no hole if the log was not compacted. */
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
