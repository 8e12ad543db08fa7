/**
 * Reads one record of a batch. Refuses what the Java client refuses: lengths that do not fit, numbers that are too
 * long, a negative number of headers, a header without a name.
 * Format: kafka.apache.org/documentation/#record.
 */
import type { RawRecord } from '../../ledger/index.ts'
import { EncodedHeaders } from '../kafka/encoded-headers.ts'
import type { BatchTime } from './record-batch.ts'
import { Undecodable } from './undecodable.ts'

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
