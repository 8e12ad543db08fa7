/**
 * The batches of a fetched part of a log: their headers are read, their records are not.
 * In: the bytes that a fetch brought of one partition, and its aborted transactions. Out: its whole batches, in order,
 *   each with what readers get of it. A fetch may cut off the last.
 * Format: kafka.apache.org/documentation/#recordbatch.
 *
 * Aborted batches are found as the protocol defines them. kafkajs reads the aborted transactions in the order of the
 * answer, which is by last offset, and starts at most one of them per record: where transactions overlap it passes
 * aborted records as committed. A batch belongs to one producer, so it is aborted in whole, whatever is in it.
 */
import { StopError } from '../../runtime/index.ts'
import type { FetchedBytes } from '../kafka/patch-fetch.ts'
import { crc32c } from './crc32c.ts'

export type RecordBatch = {
  /** The first and the last offset, as the header states them. */
  readonly first: number
  readonly last: number
  /** False if the bytes are not those that the broker stored: they were changed on a disk, or on the way. */
  readonly isIntact: boolean
  readonly codec: number
  readonly count: number
  readonly isTransactional: boolean
  readonly isControl: boolean
  readonly producerId: string
  readonly time: BatchTime
  /** The records, compressed or not. */
  readonly payload: Buffer
}

/** `appended`: the broker set one time for all records. Otherwise each record has its distance from `base`. */
export type BatchTime = { readonly appended: boolean; readonly base: bigint; readonly max: bigint }

/** Readers see a `record`; the others are holes for them. */
export type EntryKind = 'record' | 'aborted' | 'control'
export type LogBatch = { readonly kind: EntryKind; readonly batch: RecordBatch }

/** @throws StopError for the format from before Kafka 0.11, which has no headers: such a log has no event */
export const batchesOf = ({ bytes, aborted }: FetchedBytes): LogBatch[] => {
  if (!isRecordBatch(bytes)) throw new StopError('topic_unsuitable', 'it has records of the format before Kafka 0.11')
  const begun = aborted.toSorted((a, b) => a.firstOffset - b.firstOffset)
  const open = new Set<string>()
  return recordBatchesIn(bytes).map((batch): LogBatch => {
    const { producerId } = batch
    for (let next = begun[0]; next && next.firstOffset <= batch.last; next = begun[0]) {
      open.add(next.producerId)
      begun.shift()
    }
    if (batch.isControl) {
      open.delete(producerId)
      return { kind: 'control', batch }
    }
    return { kind: batch.isTransactional && open.has(producerId) ? 'aborted' : 'record', batch }
  })
}

/** Bytes before the records. */
export const HEADER_BYTES = 61
/** Bytes before the length counts, and before the checksum counts. */
const LENGTH_FROM = 12
const CHECKED_FROM = 21
const FORMAT_AT = 16
export const FORMAT = 2
const CODEC = 0x07
const LOG_APPEND_TIME = 0x08
const TRANSACTIONAL = 0x10
const CONTROL = 0x20

/** Whether a fetched part begins with a batch of the only format that has headers. */
export const isRecordBatch = (bytes: Buffer): boolean => bytes.length <= FORMAT_AT || bytes[FORMAT_AT] === FORMAT

/** Returns the whole batches. Stops before a batch of another format. */
export const recordBatchesIn = (bytes: Buffer): RecordBatch[] => {
  const batches: RecordBatch[] = []
  for (let at = 0; at + LENGTH_FROM <= bytes.length; ) {
    const end = at + LENGTH_FROM + bytes.readInt32BE(at + 8)
    const batch = bytes.subarray(at, end)
    if (end > bytes.length || (batch.length > FORMAT_AT && batch[FORMAT_AT] !== FORMAT)) break
    batches.push(readHeader(batch))
    // A length that is no length: nothing after it can be found.
    if (end < at + HEADER_BYTES) break
    at = end
  }
  return batches
}

const readHeader = (batch: Buffer): RecordBatch => {
  const first = batch.length < 8 ? -1 : Number(batch.readBigInt64BE(0))
  if (batch.length < HEADER_BYTES) return { ...DAMAGED, first, last: first }
  const attributes = batch.readInt16BE(CHECKED_FROM)
  const distance = batch.readInt32BE(23)
  return {
    first,
    last: first + distance,
    isIntact: distance >= 0 && batch.readUInt32BE(17) === crc32c(batch.subarray(CHECKED_FROM)),
    codec: attributes & CODEC,
    count: batch.readInt32BE(57),
    isTransactional: (attributes & TRANSACTIONAL) !== 0,
    isControl: (attributes & CONTROL) !== 0,
    producerId: String(batch.readBigInt64BE(43)),
    time: {
      appended: (attributes & LOG_APPEND_TIME) !== 0,
      base: batch.readBigInt64BE(27),
      max: batch.readBigInt64BE(35),
    },
    payload: batch.subarray(HEADER_BYTES),
  }
}

const DAMAGED: Omit<RecordBatch, 'first' | 'last'> = {
  isIntact: false,
  codec: 0,
  count: 0,
  isTransactional: false,
  isControl: false,
  producerId: '-1',
  time: { appended: false, base: -1n, max: -1n },
  payload: Buffer.alloc(0),
}
