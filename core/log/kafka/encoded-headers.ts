/**
 * The headers of a record, which stay encoded until they are read. Decoded headers are some thirty objects per record,
 * which the garbage collector moves while the record waits: measured alone, a payout takes the projector 57 µs instead
 * of 65. A list in the order of the record keeps repeated headers, and names such as `toString`. A name that is not
 * UTF-8 keeps its bytes, because a parked record is kept whole. kafkajs sends names as text, so such a record is not
 * published again.
 */
import { isUtf8 } from 'node:buffer'
import type { Header, RecordHeaders } from '../../ledger/index.ts'
import { loadKafkajs } from './load-kafkajs.ts'

/** kafkajs's decoder of numbers and bytes. */
type Decoder = { readonly buffer: Buffer; offset: number; readVarInt(): number }

const Decoder = loadKafkajs<new (buffer: Buffer) => Decoder>('protocol/decoder')
const Encoder = loadKafkajs<{ new (): { writeVarInt(value: number): { buffer: Buffer } } }>('protocol/encoder')

/** The encoded headers of a record. Each iteration decodes them again. */
export class EncodedHeaders implements RecordHeaders {
  readonly bytes: Buffer
  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  /** Yields one header at a time: a hostile record has millions of them. */
  *[Symbol.iterator](): Iterator<Header> {
    const decoder = new Decoder(this.bytes)
    for (let count = decoder.readVarInt(); count > 0 && isWithin(decoder); count--) {
      // A negative length means an empty name.
      const rawName = readBytes(decoder) ?? EMPTY
      const value = readBytes(decoder)
      const name = rawName.toString('utf8')
      yield isUtf8(rawName) ? [name, value] : [name, value, rawName]
    }
  }

  /** Returns the texts as `RecordHeaders` says, without decoding the other headers. */
  textsOf(names: readonly Buffer[]): (string | null | undefined)[] {
    const { bytes } = this
    const texts = Array<string | null | undefined>(names.length).fill(undefined)
    const decoder = new Decoder(bytes)
    for (let count = decoder.readVarInt(); count > 0 && isWithin(decoder); count--) {
      const nameLength = decoder.readVarInt()
      const index = names.findIndex(name => isAt(bytes, decoder.offset, nameLength, name))
      decoder.offset += Math.max(0, nameLength)
      const length = decoder.readVarInt()
      if (index !== -1) {
        const isOnly = texts[index] === undefined && length >= 0
        const end = Math.min(decoder.offset + length, bytes.length)
        texts[index] = isOnly ? textAt(bytes, decoder.offset, end) : null
      }
      decoder.offset += Math.max(0, length)
    }
    return texts
  }
}

/** A hostile record may state a larger count than it has. */
const isWithin = ({ offset, buffer }: Decoder): boolean => offset < buffer.length

/** Returns bytes with a length prefix; null if the length is negative, as in the broker. kafkajs would go backwards. */
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

/** Encodes headers as they are in a record. */
export const encodeHeaders = (headers: readonly Header[]): EncodedHeaders =>
  new EncodedHeaders(
    Buffer.concat([
      varInt(headers.length),
      ...headers.flatMap(([name, value, rawName = Buffer.from(name)]) => [...sized(rawName), ...sized(value)]),
    ]),
  )

const varInt = (value: number): Buffer => new Encoder().writeVarInt(value).buffer
const sized = (bytes: Buffer | null): Buffer[] => (bytes === null ? [varInt(-1)] : [varInt(bytes.length), bytes])

export const NO_HEADERS = encodeHeaders([])
