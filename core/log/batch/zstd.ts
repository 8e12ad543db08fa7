/**
 * Decompresses zstd like the Java client: frame after frame, and frames to skip. A frame that is cut off after a whole
 * one is ignored. Other bytes are an error. Node's stream ends with the first frame, so it gets one frame at a time.
 * Format: RFC 8878.
 */
import { createZstdDecompress } from 'node:zlib'
import { inflate } from './inflate.ts'
import { Undecodable } from './record-batch.ts'

const MAGIC = 0xfd2fb528
const SKIPPABLE_MAGIC = 0x184d2a50
const SINGLE_SEGMENT = 0x20
const CHECKSUM = 0x04
const DICTIONARY_BYTES = [0, 1, 2, 4]
const CONTENT_SIZE_BYTES = [0, 2, 4, 8]
const RLE = 1

/** @throws Undecodable */
export async function* unzstd(bytes: Buffer): AsyncGenerator<Buffer> {
  yield* inflate(createZstdDecompress(), framesOf(bytes))
}

/** The bytes of memory that the largest frame takes to decompress. */
export const largestWindow = (bytes: Buffer): number => {
  let largest = 0
  for (const frame of framesOf(bytes)) largest = Math.max(largest, headerOf(frame, 0)?.window ?? 0)
  return largest
}

/** Yields the whole frames, without those to skip. @throws Undecodable for bytes that are no frame */
function* framesOf(bytes: Buffer): Generator<Buffer> {
  let isFirst = true
  for (let at = 0; at < bytes.length; isFirst = false) {
    const isFrame = begins(bytes, at, MAGIC, 0xff)
    if (!isFrame && !begins(bytes, at, SKIPPABLE_MAGIC, 0xf0)) throw new Undecodable('not_decompressed')
    const end = isFrame ? frameEnd(bytes, at) : skippableEnd(bytes, at)
    if (end === undefined || end > bytes.length) {
      if (isFirst) throw new Undecodable('not_decompressed')
      return
    }
    if (isFrame) yield bytes.subarray(at, end)
    at = end
  }
}

/** Whether the bytes from an index on are this magic number, or its beginning at the end of the bytes. */
const begins = (bytes: Buffer, at: number, magic: number, lowMask: number): boolean => {
  for (let index = 0; index < 4 && at + index < bytes.length; index++) {
    const mask = index === 0 ? lowMask : 0xff
    if (((bytes[at + index] as number) & mask) !== ((magic >>> (8 * index)) & mask)) return false
  }
  return true
}

const skippableEnd = (bytes: Buffer, at: number): number | undefined =>
  at + 8 > bytes.length ? undefined : at + 8 + bytes.readUInt32LE(at + 4)

type Header = { readonly end: number; readonly flags: number; readonly window: number }

const headerOf = (bytes: Buffer, at: number): Header | undefined => {
  const flags = bytes[at + 4]
  if (flags === undefined) return undefined
  const isSingle = (flags & SINGLE_SEGMENT) !== 0
  const dictionary = DICTIONARY_BYTES[flags & 3] ?? 0
  const size = isSingle && flags >> 6 === 0 ? 1 : (CONTENT_SIZE_BYTES[flags >> 6] ?? 0)
  const sizeAt = at + 5 + (isSingle ? 0 : 1) + dictionary
  const end = sizeAt + size
  if (end > bytes.length) return undefined
  if (!isSingle) {
    const descriptor = bytes.readUInt8(at + 5)
    const base = 2 ** (10 + (descriptor >> 3))
    return { end, flags, window: base + (base / 8) * (descriptor & 7) }
  }
  // The field of two bytes begins at 256.
  const window = size === 8 ? Number(bytes.readBigUInt64LE(sizeAt)) : bytes.readUIntLE(sizeAt, size)
  return { end, flags, window: size === 2 ? window + 256 : window }
}

/** Returns where a frame ends; undefined if it is cut off. */
const frameEnd = (bytes: Buffer, from: number): number | undefined => {
  const header = headerOf(bytes, from)
  if (header === undefined) return undefined
  for (let at = header.end; at + 3 <= bytes.length; ) {
    const block = bytes.readUIntLE(at, 3)
    at += 3 + (((block >> 1) & 3) === RLE ? 1 : block >> 3)
    if (block & 1) return at + (header.flags & CHECKSUM ? 4 : 0)
  }
  return undefined
}
