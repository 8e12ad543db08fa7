/** Batches of records as a log has them: good ones, and ones that no producer makes. */
import type { RawRecord } from '../../core/ledger/event/decode.ts'
import { crc32c } from '../../core/log/batch/crc32c.ts'
import { BatchReader } from '../../core/log/batch/read-batch.ts'
import { type EntryKind, HEADER_BYTES, recordBatchesIn } from '../../core/log/batch/record-batch.ts'
import type { FetchedBytes } from '../../core/log/kafka/patch-fetch.ts'
import { encodeRecordBatch } from '../../core/log/records/encode-batch.ts'

export type BatchOptions = {
  readonly first: number
  readonly payload: Buffer
  /** As the header states it. */
  readonly count: number
  /** Of the last offset; `count - 1` by default. */
  readonly distance?: number
  readonly codec?: number
  readonly appended?: boolean
  readonly isTransactional?: boolean
  readonly isControl?: boolean
  readonly producerId?: number
  readonly base?: number
  readonly max?: number
  /** Of the leader that appended it. */
  readonly epoch?: number
}

/** A batch with a right checksum, whatever is in it. */
export const batchBytes = ({
  first,
  payload,
  count,
  distance = count - 1,
  codec = 0,
  appended = false,
  isTransactional = false,
  isControl = false,
  producerId = -1,
  base = 0,
  max = base,
  epoch = 0,
}: BatchOptions): Buffer => {
  const batch = Buffer.alloc(HEADER_BYTES + payload.length)
  batch.writeBigInt64BE(BigInt(first), 0)
  batch.writeInt32BE(batch.length - 12, 8)
  batch.writeInt32BE(epoch, 12)
  batch.writeInt8(2, 16)
  batch.writeInt16BE(codec | (appended ? 8 : 0) | (isTransactional ? 16 : 0) | (isControl ? 32 : 0), 21)
  batch.writeInt32BE(distance, 23)
  batch.writeBigInt64BE(BigInt(base), 27)
  batch.writeBigInt64BE(BigInt(max), 35)
  batch.writeBigInt64BE(BigInt(producerId), 43)
  batch.writeInt32BE(count, 57)
  payload.copy(batch, HEADER_BYTES)
  batch.writeUInt32BE(crc32c(batch.subarray(21)), 17)
  return batch
}

type BatchRecord = Pick<RawRecord, 'timestamp' | 'key' | 'value' | 'headers'>
const NOBODY = { producerId: '-1', producerEpoch: -1, firstSequence: -1, transactional: false }

/** The records of a batch, not compressed. Their times are distances from that of the first one. */
export const payloadOf = (records: readonly BatchRecord[]): Buffer =>
  Buffer.concat(
    records.map((record, index) => {
      // One at a time: a large batch would be compressed.
      const times = { timestamp: record.timestamp - (records[0]?.timestamp ?? 0) }
      return renumbered(encodeRecordBatch([{ ...record, timestamp: 0 }], NOBODY).subarray(HEADER_BYTES), index, times)
    }),
  )

/** A record of its own batch, as the record with another index. */
const renumbered = (record: Buffer, index: number, { timestamp }: { readonly timestamp: number }): Buffer => {
  let at = 0
  while ((record[at++] ?? 0) >= 0x80);
  // The time and the index are a byte each: both are zero.
  const body = Buffer.concat([record.subarray(at, at + 1), varint(timestamp), varint(index), record.subarray(at + 3)])
  return Buffer.concat([varint(body.length), body])
}

export const varint = (value: number): Buffer => {
  const bytes: number[] = []
  let rest = value >= 0 ? value * 2 : -value * 2 - 1
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80)
  return Buffer.from([...bytes, rest])
}

/** The batch of records with consecutive offsets. */
export const batchOfRecords = (
  first: number,
  records: readonly BatchRecord[],
  options: Partial<BatchOptions> = {},
): Buffer => {
  const base = records[0]?.timestamp ?? 0
  const max = records.reduce((latest, { timestamp }) => Math.max(latest, timestamp), base)
  return batchBytes({ first, payload: payloadOf(records), count: records.length, base, max, ...options })
}

/** `batch`: the bytes of the batch that it is in, if nobody can read that one. */
type Entry = RawRecord & { readonly kind: EntryKind; readonly batch?: Buffer | undefined }

/** The bytes that a fetch brings of these entries. */
export const fetchedOf = (entries: readonly Entry[]): FetchedBytes => {
  const runs: Entry[][] = []
  for (const entry of entries) {
    const run = runs.at(-1)
    const before = run?.at(-1)
    const isNext = before?.kind === entry.kind && before.offset + 1 === entry.offset
    if (isNext && before.batch === entry.batch) run?.push(entry)
    else runs.push([entry])
  }
  const aborted = runs.filter(([entry]) => entry?.kind === 'aborted').map(([entry]) => entry?.offset ?? 0)
  const bytes = runs.map(run => {
    const { offset = 0, kind, batch } = run[0] ?? {}
    if (batch !== undefined) return batch
    const isTransactional = kind !== 'record'
    return batchOfRecords(offset, run, {
      isTransactional,
      isControl: kind === 'control',
      producerId: producerIn(offset),
    })
  })
  return {
    bytes: Buffer.concat(bytes),
    aborted: aborted.map(firstOffset => ({ producerId: String(producerIn(firstOffset)), firstOffset })),
  }
}

/** Each run has a producer of its own, by its first offset: it is aborted alone. */
export const producerIn = (offset: number): number => 1_000 + offset

/** The records of all batches, of any size. */
export const recordsIn = async (bytes: Buffer): Promise<RawRecord[]> => {
  const records: RawRecord[] = []
  for (const batch of recordBatchesIn(bytes)) {
    const reader = new BatchReader(batch)
    for (let next = batch.first; next <= batch.last; ) {
      const part = await reader.read(next)
      records.push(...part.records)
      next = part.missing === undefined ? part.end : batch.last + 1
    }
  }
  return records
}
