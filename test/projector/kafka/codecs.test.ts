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

const MiB = 1_048_576
const texts = ['', 'x', '{"net_amount":"1234.5000"}'.repeat(10_000)]

describe.each([
  ['snappy', CompressionTypes.Snappy],
  ['lz4', CompressionTypes.LZ4],
  ['zstd', CompressionTypes.ZSTD],
  ['gzip', CompressionTypes.GZIP],
] as const)('%s', (_, type) => {
  test('decompression restores every byte', async () => {
    for (const text of texts) {
      const compressed = await codecOf(type).compress({ buffer: Buffer.from(text) })
      expect((await codecOf(type).decompress(compressed)).toString()).toBe(text)
    }
  })

  test('bytes that are not compressed are refused', async () => {
    await expect((async () => codecOf(type).decompress(Buffer.from('not compressed at all')))()).rejects.toThrow()
  })
})

/** The framing of the Java client: a header of 16 bytes, then blocks with their length in front. */
test('snappy data in the framing of the Java client is read, block after block', async () => {
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
  ['snappy', CompressionTypes.Snappy],
  ['lz4', CompressionTypes.LZ4],
  ['zstd', CompressionTypes.ZSTD],
  ['gzip', CompressionTypes.GZIP],
] as const)('a few bytes of %s that decompress to too many', (_, type) => {
  afterEach(() => registerCodecs())

  test('are refused with a permanent error: a retry would not help', async () => {
    registerCodecs(4 * MiB)
    const { compress, decompress } = codecOf(type)
    expect(await decompress(await compress({ buffer: Buffer.alloc(4 * MiB) }))).toHaveLength(4 * MiB)
    // 255 to 1: LZ4 is bounded by the headers of its blocks, of at most 4 MiB each.
    const bomb = await compress({ buffer: Buffer.alloc(9 * MiB) })
    await expect(decompress(bomb)).rejects.toThrow(kafkajs.KafkaJSNonRetriableError)
  })
})
