/**
 * Compression codecs for kafkajs: snappy, lz4 and zstd, which kafkajs lacks, and gzip, whose output kafkajs does not
 * bound. A batch that decompresses to more than the bound cannot be read, and stops the projector.
 */
import { promisify } from 'node:util'
import { gzip, unzip, zstdCompress, zstdDecompress } from 'node:zlib'
import kafkajs from 'kafkajs'
import { compressFrame, decompressFrame } from 'lz4-napi'
import { compress, uncompress } from 'snappy'
import { DECOMPRESSED_BYTES_MAX } from '../limits.ts'

/** Must be called before the first batch is read. Idempotent. */
export const registerCodecs = (maxOutputLength: number = DECOMPRESSED_BYTES_MAX): void => {
  const { CompressionCodecs, CompressionTypes } = kafkajs
  const bound = { maxOutputLength }
  CompressionCodecs[CompressionTypes.GZIP] = () => ({
    compress: (encoder: Encoder) => promisify(gzip)(encoder.buffer),
    decompress: (bytes: Buffer) => within(promisify(unzip)(bytes, bound)),
  })
  CompressionCodecs[CompressionTypes.Snappy] = () => ({
    compress: (encoder: Encoder) => compress(encoder.buffer),
    decompress: (bytes: Buffer) => fromSnappy(bytes, maxOutputLength),
  })
  CompressionCodecs[CompressionTypes.LZ4] = () => ({
    compress: (encoder: Encoder) => compressFrame(encoder.buffer),
    decompress: async (bytes: Buffer) => {
      if (lz4BytesMax(bytes) > maxOutputLength) throw tooLarge()
      return decompressFrame(bytes)
    },
  })
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: (encoder: Encoder) => promisify(zstdCompress)(encoder.buffer),
    decompress: (bytes: Buffer) => within(promisify(zstdDecompress)(bytes, bound)),
  })
}

/** Makes an oversized result fatal: kafkajs would retry it forever, like a network error. */
const within = (decompressed: Promise<Buffer>): Promise<Buffer> =>
  decompressed.catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ERR_BUFFER_TOO_LARGE' ? tooLarge() : error
  })

const tooLarge = (): Error => new kafkajs.KafkaJSNonRetriableError('a batch is too large once it is decompressed')

type Encoder = { readonly buffer: Buffer }

/** The Java client frames snappy: a 16-byte header, then blocks with a length prefix. Others send one bare block. */
const SNAPPY_MAGIC = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00])
const SNAPPY_HEADER_BYTES = 16

const fromSnappy = async (bytes: Buffer, bytesMax: number): Promise<Buffer> => {
  const blocks = bytes.subarray(0, SNAPPY_MAGIC.length).equals(SNAPPY_MAGIC) ? snappyBlocks(bytes) : [bytes]
  if (blocks.reduce((sum, block) => sum + snappyBytes(block), 0) > bytesMax) throw tooLarge()
  const parts: Buffer[] = []
  for (const block of blocks) parts.push(Buffer.from(await uncompress(block, { asBuffer: true })))
  return Buffer.concat(parts)
}

const snappyBlocks = (bytes: Buffer): Buffer[] => {
  const blocks: Buffer[] = []
  for (let at = SNAPPY_HEADER_BYTES; at < bytes.length; ) {
    const start = at + 4
    at = start + bytes.readUInt32BE(at)
    blocks.push(bytes.subarray(start, at))
  }
  return blocks
}

/** Returns the decompressed size of a snappy block. The block begins with it, as a variable-length integer. */
const snappyBytes = (block: Buffer): number => {
  let bytes = 0
  for (const [index, byte] of block.subarray(0, 5).entries()) {
    bytes += (byte & 0x7f) * 128 ** index
    if (byte < 0x80) break
  }
  return bytes
}

const LZ4_MAGIC = 0x184d2204
/** LZ4 makes at most 255 bytes of one. */
const LZ4_RATIO_MAX = 255

/**
 * Returns an upper bound of the decompressed bytes of LZ4 frames, from the headers of their blocks. A malformed frame
 * ends the walk: the decoder refuses it. Format: github.com/lz4/lz4, doc/lz4_Frame_format.md.
 */
const lz4BytesMax = (bytes: Buffer): number => {
  let sum = 0
  let at = 0
  while (at + 7 <= bytes.length && bytes.readUInt32LE(at) === LZ4_MAGIC) {
    const flags = bytes.readUInt8(at + 4)
    const blockBytesMax = 2 ** (8 + 2 * ((bytes.readUInt8(at + 5) >> 4) & 7))
    at += 7 + (flags & 0x08 ? 8 : 0) + (flags & 0x01 ? 4 : 0)
    while (at + 4 <= bytes.length) {
      const header = bytes.readUInt32LE(at)
      at += 4
      if (header === 0) break
      const length = header & 0x7fff_ffff
      sum += header > 0x7fff_ffff ? length : Math.min(blockBytesMax, LZ4_RATIO_MAX * length)
      at += length + (flags & 0x10 ? 4 : 0)
    }
    at += flags & 0x04 ? 4 : 0
  }
  return sum
}
