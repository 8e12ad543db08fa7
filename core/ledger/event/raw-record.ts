/** A Kafka record as the stages of the flow receive it: bytes, not yet decoded. */
import { createHash } from 'node:crypto'

/** `rawName` has the bytes of a name that is not UTF-8 (`name` then has replacement characters); absent otherwise. */
export type Header = readonly [name: string, value: Buffer | null, rawName?: Buffer]

/** Each iteration decodes the headers again. */
export type RecordHeaders = Iterable<Header> & {
  readonly bytes: Buffer
  /** Returns the text of each named header: undefined if absent, null if repeated, without value or not UTF-8. */
  readonly textsOf: (names: readonly Buffer[]) => (string | null | undefined)[]
}

/** `timestamp` is in milliseconds since 1970. */
export type RawRecord = {
  readonly offset: number
  readonly timestamp: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: RecordHeaders
}

/** All records of one partition from offset `from` up to, not including, `end`. */
export type Batch = {
  readonly from: number
  readonly end: number
  readonly records: readonly RawRecord[]
  /** The first offset that the log lacks. Such a batch is never taken. */
  readonly missing?: number
  /**
   * The last record, if the broker set its time. `transaction`: a record is part of a transaction, so its time may be
   * long before readers see it.
   */
  readonly appended?: { readonly offset: number; readonly time: number } | 'transaction'
  /** The epoch of the leader that appended the records: it grows with each new leader. Absent in an archive. */
  readonly epoch?: number
}

/** Estimated bytes of a record in memory. */
export const bytesOf = ({ key, value, headers }: RawRecord): number =>
  (key?.length ?? 0) + (value?.length ?? 0) + headers.bytes.length + 100

/**
 * Returns the SHA-256 of a record as the log has it: time, key, value and headers. Names of headers that are not UTF-8
 * count with replacement characters. The formula must not change: hashes are stored.
 */
export const recordHash = ({ timestamp, key, value, headers }: RawRecord): string => {
  const hash = createHash('sha256')
  const add = (bytes: Buffer | null): void => {
    hash.update(`${bytes === null ? 'null' : bytes.length}\n`)
    if (bytes !== null) hash.update(bytes)
  }
  hash.update(`${timestamp}\n`)
  add(key)
  add(value)
  for (const [name, header] of headers) {
    add(Buffer.from(name))
    add(header)
  }
  return hash.digest('hex')
}
