/** Compression codecs for the tests' own Kafka clients: kafkajs lacks snappy, lz4 and zstd. */
import { promisify } from 'node:util'
import { gzip, zstdCompress } from 'node:zlib'
import kafkajs from 'kafkajs'
import { compressFrame } from 'lz4-napi'
import { compress } from 'snappy'
import { decompress } from '../../core/log/batch/decompress.ts'

type Encoder = { readonly buffer: Buffer }

export const compressions = {
  1: (bytes: Buffer): Promise<Buffer> => promisify(gzip)(bytes),
  2: (bytes: Buffer): Promise<Buffer> => compress(bytes),
  3: (bytes: Buffer): Promise<Buffer> => compressFrame(bytes),
  4: (bytes: Buffer): Promise<Buffer> => promisify(zstdCompress)(bytes),
} as const

/** Idempotent. */
export const registerCodecs = (): void => {
  for (const codec of [1, 2, 3, 4] as const) {
    kafkajs.CompressionCodecs[codec] = () => ({
      compress: ({ buffer }: Encoder) => compressions[codec](buffer),
      decompress: (bytes: Buffer) => allOf(decompress(codec, bytes)),
    })
  }
}

export const allOf = async (parts: Iterable<Buffer> | AsyncIterable<Buffer>): Promise<Buffer> => {
  const all: Buffer[] = []
  for await (const part of parts) all.push(part)
  return Buffer.concat(all)
}
