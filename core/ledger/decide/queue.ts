/**
 * The records of one partition that were read and are not yet decided, in order. In: batches as fetched. Out: batches
 * to decide: small ones combined, large ones split by BATCH_RECORDS and BATCH_BYTES. A record larger than BATCH_BYTES
 * comes alone.
 */

import { type Batch, bytesOf, type RawRecord } from '../event/raw-record.ts'
import { BATCH_BYTES, BATCH_RECORDS } from '../limits.ts'

export class Queue {
  #batches: Batch[] = []

  get isEmpty(): boolean {
    return this.#batches.length === 0
  }

  add(batch: Batch): void {
    this.#batches.push(batch)
  }

  /** Puts back the unused rest of the last batch. It must start where the used part ends. */
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
      for (const [index, record] of batch.records.entries()) {
        const length = bytesOf(record)
        if (records.length > 0 && (records.length === BATCH_RECORDS || bytes + length > BATCH_BYTES)) {
          const [, rest] = splitBatch(batch, index)
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

/** Splits a batch before the record with this index. */
export const splitBatch = ({ from, end, records }: Batch, index: number): [Batch, Batch] => {
  const at = records[index]?.offset ?? end
  return [
    { from, end: at, records: records.slice(0, index) },
    { from: at, end, records: records.slice(index) },
  ]
}

/** Splits a batch at an offset, which goes to the second part. */
export const splitAtOffset = ({ from, end, records }: Batch, offset: number): [Batch, Batch] => [
  { from, end: offset, records: records.filter(record => record.offset < offset) },
  { from: offset, end, records: records.filter(record => record.offset >= offset) },
]

/** Estimated bytes of records in memory. */
export const bytesOfAll = (records: readonly RawRecord[]): number => {
  let bytes = 0
  for (const record of records) bytes += bytesOf(record)
  return bytes
}
