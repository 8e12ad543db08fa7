/**
 * Makes the Kafka client leave the headers of a record as they lie in the log, to be read when they are asked for.
 *
 * By itself it copies all headers read so far for each further one: 10,000 headers, which fit into 80 KB, take half a
 * minute in which nothing else runs, and as many as a record may hold take days. A single such record would end a
 * partition. It also looks up each name in an object that has `toString` and its like already, and then keeps those as
 * header values. Here they stay what they are in the record: a list, in its order.
 *
 * And most records wait before anybody looks at them: read at once, their headers are some thirty objects each that the
 * collector moves meanwhile. Measured alone, a payout takes the projector 57 µs in place of 65.
 *
 * It also takes a length that is negative, but not -1, for a way back in the record, and reads for hours: for the
 * broker, which stores such records, that is null.
 *
 * Knows two methods of the client that are not part of its interface; the client's version is pinned, and a test reads
 * records through it.
 */
import { isUtf8 } from 'node:buffer'
import { createRequire } from 'node:module'
import type { Header, RecordHeaders } from '../event/raw-record.ts'

/** The client's reader of numbers and bytes. */
type Decoder = {
  readonly buffer: Buffer
  offset: number
  readVarInt(): number
  readVarIntBytes(): Buffer | null
  readVarIntArray(): Readable
}

/**
 * What the client takes for an array, which it makes into an object with `reduce`: that is what a message has for
 * headers.
 */
type Readable = { readonly reduce: () => EncodedHeaders }

const load = createRequire(import.meta.url)
const Decoder = load('kafkajs/src/protocol/decoder') as { new (buffer: Buffer): Decoder; readonly prototype: Decoder }
const Encoder = load('kafkajs/src/protocol/encoder') as { new (): { writeVarInt(value: number): { buffer: Buffer } } }

/** The headers of a record in its own bytes. They are read each time they are iterated. */
export class EncodedHeaders implements RecordHeaders {
  readonly bytes: Buffer
  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  /** One after the other: a hostile record has millions of them. */
  *[Symbol.iterator](): Iterator<Header> {
    const decoder = new Decoder(this.bytes)
    for (let count = decoder.readVarInt(); count > 0 && isWithin(decoder); count--) {
      // A name of no length at all is an empty one.
      const rawName = readBytes(decoder) ?? EMPTY
      const value = readBytes(decoder)
      const name = rawName.toString('utf8')
      yield isUtf8(rawName) ? [name, value] : [name, value, rawName]
    }
  }

  /**
   * The text of the header of each of these names, without reading the others: undefined where there is none, null
   * where it is repeated, has no value or is not UTF-8.
   */
  textsOf(names: readonly Buffer[]): (string | null | undefined)[] {
    const { bytes } = this
    const texts = Array<string | null | undefined>(names.length).fill(undefined)
    const decoder = new Decoder(bytes)
    for (let count = decoder.readVarInt(); count > 0 && isWithin(decoder); count--) {
      const nameLength = decoder.readVarInt()
      const place = names.findIndex(name => isAt(bytes, decoder.offset, nameLength, name))
      decoder.offset += Math.max(0, nameLength)
      const length = decoder.readVarInt()
      if (place !== -1) {
        const isOnly = texts[place] === undefined && length >= 0
        const end = Math.min(decoder.offset + length, bytes.length)
        texts[place] = isOnly ? textAt(bytes, decoder.offset, end) : null
      }
      decoder.offset += Math.max(0, length)
    }
    return texts
  }
}

/** A hostile record may say that there are more than there are. */
const isWithin = ({ offset, buffer }: Decoder): boolean => offset < buffer.length

/**
 * Bytes after their length; null where that is negative, whatever it is, as the broker has it. The client would go
 * backwards.
 */
const readBytes = (decoder: Decoder): Buffer | null => {
  const length = decoder.readVarInt()
  if (length < 0) return null
  const from = decoder.offset
  decoder.offset += length
  return decoder.buffer.subarray(from, from + length)
}

const isAt = (bytes: Buffer, from: number, length: number, name: Buffer): boolean => {
  if (length !== name.length) return false
  for (let i = 0; i < length; i++) if (bytes[from + i] !== name[i]) return false
  return true
}

const textAt = (bytes: Buffer, from: number, to: number): string | null => {
  for (let i = from; i < to; i++) {
    if ((bytes[i] ?? 0) < 0x80) continue
    const value = bytes.subarray(from, to)
    return isUtf8(value) ? value.toString('utf8') : null
  }
  return bytes.toString('latin1', from, to)
}

const EMPTY = Buffer.alloc(0)

/** Headers as they would lie in a record. */
export const encodeHeaders = (headers: readonly Header[]): EncodedHeaders =>
  new EncodedHeaders(
    Buffer.concat([
      varInt(headers.length),
      ...headers.flatMap(([name, value, rawName = Buffer.from(name)]) => [...sized(rawName), ...sized(value)]),
    ]),
  )

const varInt = (value: number): Buffer => new Encoder().writeVarInt(value).buffer
const sized = (bytes: Buffer | null): Buffer[] => (bytes === null ? [varInt(-1)] : [varInt(bytes.length), bytes])

/** Those of a record that has none. */
export const NO_HEADERS = encodeHeaders([])

/** Must be called before the first batch is read; calling it again changes nothing. */
export const leaveHeadersEncoded = (): void => {
  // Keys and values, too.
  Decoder.prototype.readVarIntBytes = function () {
    return readBytes(this)
  }
  // The client calls this for headers only.
  Decoder.prototype.readVarIntArray = function () {
    const from = this.offset
    // Each has a name and a value.
    for (let parts = 2 * this.readVarInt(); parts > 0 && isWithin(this); parts--) {
      const length = this.readVarInt()
      if (length > 0) this.offset += length
    }
    const headers = new EncodedHeaders(this.buffer.subarray(from, this.offset))
    return { reduce: () => headers }
  }
}
