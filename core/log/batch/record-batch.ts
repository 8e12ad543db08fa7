/**
 * The batches of a fetched part of a log: their headers are read. Their records are read one by one, by the functions
 * at the end.
 * In: the bytes that a fetch brought of one partition, and its aborted transactions. Out: its whole batches, in order,
 *   each with what readers get of it. A fetch may cut off the last.
 * Format: kafka.apache.org/documentation/#recordbatch.
 *
 * Aborted batches are found as the protocol defines them. kafkajs reads the aborted transactions in the order of the
 * answer, which is by last offset, and starts at most one of them per record: where transactions overlap it passes
 * aborted records as committed. A batch belongs to one producer, so it is aborted in whole, whatever is in it.
 */
import type { RawRecord, UnreadableReason } from '../../ledger/index.ts'
import { StopError } from '../../runtime/index.ts'
import { EncodedHeaders } from '../kafka/encoded-headers.ts'
import type { FetchedBytes } from '../kafka/patch-fetch.ts'
import { crc32c } from './crc32c.ts'

export type RecordBatch = {
  /** The first and the last offset, as the header states them. */
  readonly first: number
  readonly last: number
  /** Of the leader that appended it: it grows with each new leader of the partition. */
  readonly epoch: number
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
const EPOCH_AT = 12
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
    epoch: batch.readInt32BE(EPOCH_AT),
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
  epoch: -1,
  isIntact: false,
  codec: 0,
  count: 0,
  isTransactional: false,
  isControl: false,
  producerId: '-1',
  time: { appended: false, base: -1n, max: -1n },
  payload: Buffer.alloc(0),
}

// One record of a batch, in the format of kafka.apache.org/documentation/#record. Refused is what the Java client
// refuses: lengths that do not fit, numbers that are too long, a negative number of headers, a header without a name.

/** Reads numbers of variable length: seven bits a byte, the sign in the lowest bit. */
export class VarintReader {
  readonly bytes: Buffer
  at: number
  constructor(bytes: Buffer, at: number) {
    this.bytes = bytes
    this.at = at
  }

  /** Returns a number of 32 bits; undefined if the bytes end before it does. */
  varint(): number | undefined {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = this.bytes[this.at]
      if (byte === undefined) return undefined
      this.at++
      value |= (byte & 0x7f) << shift
      if (byte < 0x80) return (value >>> 1) ^ -(value & 1)
      if (shift === 28) throw malformed()
    }
  }

  /** Returns a number of 64 bits. */
  varlong(): number | bigint {
    let value = 0
    for (let index = 0; index < EXACT_BYTES; index++) {
      const byte = this.#next()
      value += (byte & 0x7f) * 128 ** index
      if (byte < 0x80) return value % 2 === 0 ? value / 2 : -(value + 1) / 2
    }
    let long = BigInt(value)
    for (let index = EXACT_BYTES; index < 10; index++) {
      const byte = this.#next()
      long |= BigInt(byte & 0x7f) << BigInt(7 * index)
      if (byte < 0x80) {
        const bits = BigInt.asUintN(64, long)
        return (bits >> 1n) ^ -(bits & 1n)
      }
    }
    throw malformed()
  }

  #next(): number {
    const byte = this.bytes[this.at++]
    if (byte === undefined) throw malformed()
    return byte
  }
}

/** Numbers of this many bytes are exact in JavaScript. */
const EXACT_BYTES = 7

const malformed = (): Undecodable => new Undecodable('records_malformed')

/** Where the parts of a record are. It is used again for each record: most of a large batch is only checked. */
export type Layout = {
  delta: number
  time: number | bigint
  keyFrom: number
  keyTo: number
  valueFrom: number
  valueTo: number
  headersFrom: number
}
export const newLayout = (): Layout => ({
  ...{ delta: 0, time: 0, keyFrom: 0, keyTo: 0, valueFrom: 0, valueTo: 0, headersFrom: 0 },
})

/** Fills the layout of the record between two indices. @throws Undecodable */
export const readLayout = (bytes: Buffer, from: number, to: number, layout: Layout): void => {
  // The first byte has no meaning yet.
  const reader = new VarintReader(bytes, from + 1)
  const number = (): number => {
    const value = reader.varint()
    if (value === undefined) throw malformed()
    return value
  }
  const skip = (length: number): void => {
    if (length > 0) reader.at += length
    if (reader.at > to) throw malformed()
  }
  layout.time = reader.varlong()
  layout.delta = number()
  const keyLength = number()
  layout.keyFrom = keyLength < 0 ? -1 : reader.at
  skip(keyLength)
  layout.keyTo = reader.at
  const valueLength = number()
  layout.valueFrom = valueLength < 0 ? -1 : reader.at
  skip(valueLength)
  layout.valueTo = reader.at
  layout.headersFrom = reader.at
  const count = number()
  if (count < 0) throw malformed()
  for (let header = 0; header < count; header++) {
    const name = number()
    if (name < 0) throw malformed()
    skip(name)
    skip(number())
  }
  if (reader.at !== to) throw malformed()
}

/** Returns the record between two indices, of which the layout is read. */
export const recordOf = (bytes: Buffer, to: number, layout: Layout, first: number, time: BatchTime): RawRecord => {
  const { keyFrom, keyTo, valueFrom, valueTo, headersFrom } = layout
  return {
    offset: first + layout.delta,
    timestamp: time.appended ? Number(time.max) : plus(time.base, layout.time),
    key: keyFrom === -1 ? null : bytes.subarray(keyFrom, keyTo),
    value: valueFrom === -1 ? null : bytes.subarray(valueFrom, valueTo),
    headers: new EncodedHeaders(bytes.subarray(headersFrom, to)),
  }
}

const plus = (base: bigint, distance: number | bigint): number => {
  const sum = Number(base) + Number(distance)
  return Number.isSafeInteger(sum) ? sum : Number(BigInt.asIntN(64, base + BigInt(distance)))
}

/** A batch that cannot be read, and why. The reason is stored: it depends on the bytes of the batch alone. */
export class Undecodable extends Error {
  override name = 'Undecodable'
  readonly reason: UnreadableReason
  constructor(reason: UnreadableReason) {
    super(reason)
    this.reason = reason
  }
}
