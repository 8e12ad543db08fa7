import kafkajs from 'kafkajs'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { registerCodecs } from '../../../projector/kafka/codecs.ts'

const { CompressionCodecs, CompressionTypes } = kafkajs
type Codec = { compress(encoder: { buffer: Buffer }): Promise<Buffer>; decompress(bytes: Buffer): Promise<Buffer> }
const codecOf = (type: keyof typeof CompressionCodecs): Codec => CompressionCodecs[type]() as Codec

beforeAll(() => {
  registerCodecs()
  registerCodecs()
})

const texts = ['', 'x', '{"net_amount":"1234.5000"}'.repeat(10_000)]

describe.each([
  ['snappy', CompressionTypes.Snappy],
  ['lz4', CompressionTypes.LZ4],
  ['zstd', CompressionTypes.ZSTD],
  ['gzip', CompressionTypes.GZIP],
] as const)('%s', (_, type) => {
  test('what is compressed is read again, byte for byte', async () => {
    for (const text of texts) {
      const compressed = await codecOf(type).compress({ buffer: Buffer.from(text) })
      expect((await codecOf(type).decompress(compressed)).toString()).toBe(text)
    }
  })

  test('bytes that are not compressed are refused', async () => {
    await expect((async () => codecOf(type).decompress(Buffer.from('not compressed at all')))()).rejects.toThrow()
  })
})

/** A header of 16 bytes, then blocks, each with its length in front: what the Java client sends. */
test('snappy in the framing of the Java client is read, block after block', async () => {
  const { compress, decompress } = codecOf(CompressionTypes.Snappy)
  const header = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00, 0, 0, 0, 1, 0, 0, 0, 1])
  const parts: Buffer[] = [header]
  for (const text of ['one ', 'two ', 'x'.repeat(100_000)]) {
    const block = await compress({ buffer: Buffer.from(text) })
    const length = Buffer.alloc(4)
    length.writeInt32BE(block.length)
    parts.push(length, block)
  }
  expect((await decompress(Buffer.concat(parts))).toString()).toBe(`one two ${'x'.repeat(100_000)}`)
})

describe.each([
  ['zstd', CompressionTypes.ZSTD],
  ['gzip', CompressionTypes.GZIP],
] as const)('a few bytes of %s that become too many', (_, type) => {
  afterEach(() => registerCodecs())

  test('are refused for good: trying again would not help', async () => {
    registerCodecs(1_000)
    const { compress, decompress } = codecOf(type)
    expect(await decompress(await compress({ buffer: Buffer.alloc(1_000) }))).toHaveLength(1_000)
    const bomb = await compress({ buffer: Buffer.alloc(1_001) })
    await expect(decompress(bomb)).rejects.toThrow(kafkajs.KafkaJSNonRetriableError)
  })
})
