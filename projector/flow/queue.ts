/**
 * The records of one partition that were read and are not yet decided, in order. In: batches as they were fetched. Out:
 * batches as they are decided: several small ones together, a large one in parts, by BATCH_RECORDS and BATCH_BYTES. A
 * record that is larger than BATCH_BYTES is taken all the same.
 */

import type { RawRecord } from '../event/raw-record.ts'
import { BATCH_BYTES, BATCH_RECORDS } from '../limits.ts'

/** Records of one partition as they were read: everything from offset `from` up to, not including, `end`. */
export type Batch = {
  readonly from: number
  readonly end: number
  readonly records: readonly RawRecord[]
  /** The first offset that the log no longer has. Such a batch is never taken. */
  readonly missing?: number
  /**
   * Its last record, where the broker's clock gave it its time; `transaction` where some lay in the log before they
   * were committed.
   */
  readonly appended?: { readonly offset: number; readonly time: number } | 'transaction'
}

export class Queue {
  #batches: Batch[] = []

  get isEmpty(): boolean {
    return this.#batches.length === 0
  }

  add(batch: Batch): void {
    this.#batches.push(batch)
  }

  /** What was taken last and comes next after all: it must begin where what was used of it ends. */
  putBack(batch: Batch): void {
    if (batch.end > batch.from) this.#batches.unshift(batch)
  }

  clear(): void {
    this.#batches = []
  }

  next(): Batch | undefined {
    const first = this.#batches.shift()
    if (first === undefined) return undefined
    const records: RawRecord[] = []
    let bytes = 0
    let end = first.from
    for (let batch: Batch | undefined = first; batch; batch = this.#batches.shift()) {
      for (const [place, record] of batch.records.entries()) {
        const length = bytesOf(record)
        if (records.length > 0 && (records.length === BATCH_RECORDS || bytes + length > BATCH_BYTES)) {
          const [, rest] = cut(batch, place)
          this.putBack(rest)
          return { from: first.from, end: rest.from, records }
        }
        records.push(record)
        bytes += length
      }
      end = batch.end
    }
    return { from: first.from, end, records }
  }
}

/** A batch in two: the records before a place, and those from it on; all before one that there is not. */
export const cut = ({ from, end, records }: Batch, wanted: number): [Batch, Batch] => {
  const place = wanted < 0 ? records.length : wanted
  const at = records[place]?.offset ?? end
  return [
    { from, end: at, records: records.slice(0, place) },
    { from: at, end, records: records.slice(place) },
  ]
}

/** A batch in two: what lies before an offset, and what lies from it on. */
export const cutAt = ({ from, end, records }: Batch, offset: number): [Batch, Batch] => [
  { from, end: offset, records: records.filter(record => record.offset < offset) },
  { from: offset, end, records: records.filter(record => record.offset >= offset) },
]

/** Bytes that records take while they are held, roughly. */
export const bytesOfAll = (records: readonly RawRecord[]): number => {
  let bytes = 0
  for (const record of records) bytes += bytesOf(record)
  return bytes
}

const bytesOf = ({ key, value, headers }: RawRecord): number =>
  (key?.length ?? 0) + (value?.length ?? 0) + headers.bytes.length + 100
