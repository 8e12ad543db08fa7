/** A request of Kafka's protocol that this project encodes itself, in the form that kafkajs sends. */
import { loadKafkajs } from './load-kafkajs.ts'

export type ProtocolRequest<Answer> = {
  readonly request: {
    readonly apiKey: number
    readonly apiVersion: number
    readonly apiName: string
    readonly encode: () => Promise<unknown>
  }
  readonly response: {
    readonly decode: (bytes: Buffer) => Promise<Answer>
    /** Of a fetch by topic id: returns its answer in the form of version 11. */
    readonly asVersion11?: (bytes: Buffer) => Buffer
    readonly parse: (answer: Answer) => Promise<Answer>
  }
}

/** How kafkajs makes a request: it takes the lower one of its own highest version and the broker's. */
export type RequestDefinitions<Asked, Answer> = {
  readonly versions: string[]
  protocol: (asked: { readonly version: number }) => (given: Asked) => ProtocolRequest<Answer>
}

export type Encoder = { readonly buffer: Buffer; writeBufferInternal(bytes: Buffer): void }

/** Returns kafkajs's form of encoded fields. */
export const encoderOf = (bytes: Buffer): Encoder => {
  const encoder = new (loadKafkajs<new () => Encoder>('protocol/encoder'))()
  encoder.writeBufferInternal(bytes)
  return encoder
}

/** kafkajs's connections to a broker. */
export type ProtocolConnections = { send<Answer>(request: ProtocolRequest<Answer>): Promise<Answer> }

// --- flexible versions of the protocol (KIP-482): compact lengths, and tagged fields, which kafkajs reads wrongly

/** No tagged fields. A body begins with it, too: it ends the header of a request. */
export const NO_TAGS = Buffer.from([0])

export const int8 = (value: number): Buffer => Buffer.from([value & 0xff])

export const int32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

export const int64 = (value: string | number): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64BE(BigInt(value))
  return bytes
}

const unsignedVarint = (value: number): Buffer => {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80)
  return Buffer.from([...bytes, rest])
}

export const compactString = (text: string): Buffer => {
  const bytes = Buffer.from(text)
  return Buffer.concat([unsignedVarint(bytes.length + 1), bytes])
}

export const compactArray = (items: readonly Buffer[]): Buffer =>
  Buffer.concat([unsignedVarint(items.length + 1), ...items])

/** A null array or a null string. */
export const COMPACT_NULL = Buffer.from([0])

/** Reads the fields of an answer in order. */
export class FlexibleReader {
  readonly #bytes: Buffer
  #offset = 0

  /** @param bytes an answer after its correlation id */
  constructor(bytes: Buffer) {
    this.#bytes = bytes
    this.tags()
  }

  int16(): number {
    return this.bytes(2).readInt16BE()
  }
  int32(): number {
    return this.bytes(4).readInt32BE()
  }
  boolean(): boolean {
    return this.bytes(1)[0] !== 0
  }
  bytes(length: number): Buffer {
    const from = this.#offset
    this.#offset += length
    if (this.#offset > this.#bytes.length) throw new Error('an answer of Kafka ends too early')
    return this.#bytes.subarray(from, this.#offset)
  }
  /** Returns null for a null value. */
  compactBytes(): Buffer | null {
    const length = this.#unsignedVarint()
    return length === 0 ? null : this.bytes(length - 1)
  }
  compactString(): string | null {
    return this.compactBytes()?.toString('utf8') ?? null
  }
  /** Returns no items for a null array. */
  compactArray<Item>(read: (reader: this) => Item): Item[] {
    const length = this.#unsignedVarint() - 1
    const items: Item[] = []
    for (let i = 0; i < length; i++) items.push(read(this))
    return items
  }
  /** Passes over tagged fields: they are optional additions. */
  tags(): void {
    for (let count = this.#unsignedVarint(); count > 0; count--) {
      this.#unsignedVarint()
      this.bytes(this.#unsignedVarint())
    }
  }

  #unsignedVarint(): number {
    let value = 0
    for (let factor = 1; ; factor *= 0x80) {
      const byte = this.bytes(1)[0] ?? 0
      value += (byte & 0x7f) * factor
      if (byte < 0x80) return value
    }
  }
}
