/**
 * Decompresses snappy like the Java client. The Java client frames snappy: a header of 16 bytes, then blocks with their
 * length in front; a header may come again between two blocks. Other clients send one block without a header.
 */
import { uncompress, uncompressSync } from 'snappy'
import { Undecodable } from './record-batch.ts'

const MAGIC = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00])
const HEADER_BYTES = 16
const LENGTH_BYTES = 4
/** Snappy makes at most 64 bytes of three. */
const RATIO_MAX = 22
/** A block of more bytes is decompressed on another thread. */
const SMALL_BYTES = 64 * 1024

/** @throws Undecodable */
export async function* unsnappy(bytes: Buffer): AsyncGenerator<Buffer> {
  for (const block of blocksOf(bytes)) {
    const size = sizeOf(block)
    if (size > block.length * RATIO_MAX + 1) throw damaged()
    try {
      yield Buffer.from(size > SMALL_BYTES ? await uncompress(block) : uncompressSync(block))
    } catch {
      throw damaged()
    }
  }
}

/** The bytes that the largest block decompresses to: they are in memory at once. */
export const largestBlock = (bytes: Buffer): number => {
  let largest = 0
  for (const block of blocksOf(bytes)) largest = Math.max(largest, sizeOf(block))
  return largest
}

const damaged = (): Undecodable => new Undecodable('not_decompressed')

function* blocksOf(bytes: Buffer): Generator<Buffer> {
  const isFramed = bytes.length >= HEADER_BYTES && bytes.subarray(0, MAGIC.length).equals(MAGIC)
  if (!isFramed) return yield bytes
  // Fewer than four bytes at the end are ignored.
  for (let at = HEADER_BYTES; at + LENGTH_BYTES <= bytes.length; ) {
    const length = bytes.readInt32BE(at)
    if (length === MAGIC.readInt32BE(0)) {
      at += HEADER_BYTES
      if (at > bytes.length) throw damaged()
      continue
    }
    const begin = at + LENGTH_BYTES
    at = begin + length
    if (length < 0 || at > bytes.length) throw damaged()
    yield bytes.subarray(begin, at)
  }
}

/** Returns the decompressed size of a block. The block begins with it, as a variable-length integer. */
const sizeOf = (block: Buffer): number => {
  let bytes = 0
  for (let index = 0; index < 5; index++) {
    const byte = block[index]
    if (byte === undefined) throw damaged()
    bytes += (byte & 0x7f) * 128 ** index
    if (byte < 0x80) return bytes
  }
  throw damaged()
}
