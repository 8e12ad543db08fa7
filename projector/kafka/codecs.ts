/**
 * Compressions that publishers may use: snappy, lz4 and zstd, which the Kafka client does not bring, and gzip, which it
 * brings without a bound on what comes out. A batch that is larger stops the projector: it cannot be read.
 */
import { promisify } from 'node:util'
import { gzip, unzip, zstdCompress, zstdDecompress } from 'node:zlib'
import kafkajs from 'kafkajs'
import { compressFrame, decompressFrame } from 'lz4-napi'
import { compress, uncompress } from 'snappy'
import { DECOMPRESSED_BYTES_MAX } from '../limits.ts'

/** Must be called before the first batch is read; calling it again changes nothing. */
export const registerCodecs = (maxOutputLength: number = DECOMPRESSED_BYTES_MAX): void => {
  const { CompressionCodecs, CompressionTypes } = kafkajs
  const bound = { maxOutputLength }
  CompressionCodecs[CompressionTypes.GZIP] = () => ({
    compress: (encoder: Encoder) => promisify(gzip)(encoder.buffer),
    decompress: (bytes: Buffer) => within(promisify(unzip)(bytes, bound)),
  })
  CompressionCodecs[CompressionTypes.Snappy] = () => ({ compress: toSnappy, decompress: fromSnappy })
  CompressionCodecs[CompressionTypes.LZ4] = () => ({
    compress: (encoder: Encoder) => compressFrame(encoder.buffer),
    decompress: (bytes: Buffer) => decompressFrame(bytes),
  })
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: (encoder: Encoder) => promisify(zstdCompress)(encoder.buffer),
    decompress: (bytes: Buffer) => within(promisify(zstdDecompress)(bytes, bound)),
  })
}

/** What the client would try again for ever as if it were the network. */
const within = (decompressed: Promise<Buffer>): Promise<Buffer> =>
  decompressed.catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ERR_BUFFER_TOO_LARGE') throw error
    throw new kafkajs.KafkaJSNonRetriableError('a batch is too large once it is decompressed')
  })

type Encoder = { readonly buffer: Buffer }

const toSnappy = (encoder: Encoder): Promise<Buffer> => compress(encoder.buffer)

/**
 * The Java client's framing: a header of 16 bytes, then blocks, each with its length in front. Others send one bare
 * block.
 */
const MAGIC = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00])
const HEADER_BYTES = 16

const fromSnappy = async (bytes: Buffer): Promise<Buffer> => {
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) return block(bytes)
  const blocks: Buffer[] = []
  for (let at = HEADER_BYTES; at < bytes.length; ) {
    const length = bytes.readInt32BE(at)
    blocks.push(await block(bytes.subarray(at + 4, at + 4 + length)))
    at += 4 + length
  }
  return Buffer.concat(blocks)
}

const block = async (bytes: Buffer): Promise<Buffer> => Buffer.from(await uncompress(bytes, { asBuffer: true }))
