/**
 * In: the records of a batch, compressed. Out: the same, decompressed, part by part. All forms that the Java
 * client reads are read: `test/support/compressed.ts` lists them.
 */
import { setImmediate } from 'node:timers/promises'
import { gunzip } from './gzip.ts'
import { lz4Blocks } from './lz4.ts'
import { Undecodable } from './record-batch.ts'
import { largestBlock, unsnappy } from './snappy.ts'
import { largestWindow, unzstd } from './zstd.ts'

const [NONE, GZIP, SNAPPY, LZ4, ZSTD] = [0, 1, 2, 3, 4] as const

/** @throws Undecodable */
export const decompress = (codec: number, bytes: Buffer): Iterable<Buffer> | AsyncIterable<Buffer> => {
  switch (codec) {
    case NONE:
      return [bytes]
    case GZIP:
      return gunzip(bytes)
    case SNAPPY:
      return withTurns(unsnappy(bytes))
    case LZ4:
      return withTurns(lz4Blocks(bytes))
    case ZSTD:
      return unzstd(bytes)
    default:
      throw new Undecodable('codec_unknown')
  }
}

/** The bytes of memory that it takes to decompress. @throws Undecodable */
export const memoryFor = (codec: number, bytes: Buffer): number => {
  if (codec === SNAPPY) return largestBlock(bytes)
  return codec === ZSTD ? largestWindow(bytes) : 0
}

/** Bytes after which other work of the process has its turn. Each part counts for some more. */
const TURN_BYTES = 1024 * 1024
const PART_BYTES = 1024

async function* withTurns(chunks: Iterable<Buffer> | AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let bytes = 0
  for await (const chunk of chunks) {
    yield chunk
    bytes += chunk.length + PART_BYTES
    if (bytes < TURN_BYTES) continue
    bytes = 0
    await setImmediate()
  }
}
