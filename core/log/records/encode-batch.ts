/**
 * Encodes a record batch of Kafka (format 2) with exactly the bytes of the records. kafkajs's own encoder loses the
 * order of headers, headers without a value, and names that are not UTF-8.
 * In: records, and the producer that appends them. Out: the bytes of a batch.
 */
import { zstdCompressSync } from 'node:zlib'
import type { RawRecord } from '../../ledger/index.ts'
import { loadKafkajs } from '../kafka/load-kafkajs.ts'

export type BatchProducer = {
  readonly producerId: string
  readonly producerEpoch: number
  readonly firstSequence: number
  readonly transactional: boolean
}
type BatchRecord = Pick<RawRecord, 'timestamp' | 'key' | 'value' | 'headers'>

const checksum = loadKafkajs<(bytes: Buffer) => number>('protocol/recordBatch/crc32C')

/** Bytes before the attributes: base offset, length, leader epoch, format, checksum. */
const PREFIX_BYTES = 21
const HEADER_BYTES = 61
const FORMAT = 2
const ZSTD = 4
const TRANSACTIONAL = 16
/** A larger batch is compressed, if it becomes smaller: it may be larger than the topic accepts. */
const PLAIN_BYTES = 1024 * 1024

/** Times of one batch differ by less than this many milliseconds, so that a difference is a plain number. */
export const BATCH_TIME_SPAN = 2 ** 31

export const encodeRecordBatch = (records: readonly BatchRecord[], producer: BatchProducer): Buffer => {
  const [first] = records
  if (first === undefined) throw new Error('a batch without records')
  const base = kafkaTime(first.timestamp)
  const bodies = records.map((record, index) => encodeRecord(record, Number(kafkaTime(record.timestamp) - base), index))
  const plain = Buffer.concat(bodies)
  const compressed = plain.length > PLAIN_BYTES ? zstdCompressSync(plain) : plain
  const isSmaller = compressed.length < plain.length
  const body = isSmaller ? compressed : plain
  const batch = Buffer.alloc(HEADER_BYTES + body.length)
  batch.writeInt32BE(batch.length - 12, 8)
  batch.writeInt8(FORMAT, 16)
  batch.writeInt16BE((isSmaller ? ZSTD : 0) | (producer.transactional ? TRANSACTIONAL : 0), PREFIX_BYTES)
  batch.writeInt32BE(records.length - 1, 23)
  batch.writeBigInt64BE(base, 27)
  batch.writeBigInt64BE(latestOf(records), 35)
  batch.writeBigInt64BE(BigInt(producer.producerId), 43)
  batch.writeInt16BE(producer.producerEpoch, 51)
  batch.writeInt32BE(producer.firstSequence, 53)
  batch.writeInt32BE(records.length, 57)
  body.copy(batch, HEADER_BYTES)
  batch.writeUInt32BE(checksum(batch.subarray(PREFIX_BYTES)) >>> 0, 17)
  return batch
}

/** Returns the latest time of the records of a batch. */
export const latestOf = (records: readonly Pick<RawRecord, 'timestamp'>[]): bigint =>
  kafkaTime(records.reduce((max, { timestamp }) => Math.max(max, timestamp), Number.NEGATIVE_INFINITY))

/**
 * Returns a time in 64 bits. Above 2^53 (nanoseconds) the time of a record is read rounded, and written so: it is read
 * as the same number again. The highest time, 2^63 - 1, is read as 2^63.
 */
export const kafkaTime = (timestamp: number): bigint => {
  const time = BigInt(timestamp)
  return time < HIGHEST_TIME ? time : HIGHEST_TIME
}
const HIGHEST_TIME = 2n ** 63n - 1n

const encodeRecord = ({ key, value, headers }: BatchRecord, time: number, index: number): Buffer => {
  const lengths = [key, value].map(part => (part === null ? -1 : part.length))
  const bytes = lengths.reduce((sum, length) => sum + sizeOf(length) + Math.max(0, length), 0)
  const length = 1 + sizeOf(time) + sizeOf(index) + bytes + headers.bytes.length
  const record = Buffer.allocUnsafe(sizeOf(length) + length)
  let at = writeNumber(record, length, 0)
  // Attributes that Kafka does not use.
  record[at++] = 0
  at = writeNumber(record, time, at)
  at = writeNumber(record, index, at)
  for (const part of [key, value]) {
    at = writeNumber(record, part === null ? -1 : part.length, at)
    if (part !== null) at += part.copy(record, at)
  }
  headers.bytes.copy(record, at)
  return record
}

/** Numbers have a variable length: zigzag, then seven bits a byte. Bitwise operators would cut times to 32 bits. */
const zigzag = (value: number): number => (value >= 0 ? value * 2 : -value * 2 - 1)

const sizeOf = (value: number): number => {
  let size = 1
  for (let rest = zigzag(value); rest >= 0x80; rest = Math.floor(rest / 0x80)) size++
  return size
}

/** Returns the offset after the number. */
const writeNumber = (to: Buffer, value: number, from: number): number => {
  let at = from
  let rest = zigzag(value)
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) to[at++] = (rest % 0x80) | 0x80
  to[at++] = rest
  return at
}
