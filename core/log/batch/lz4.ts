/**
 * Decompresses the LZ4 frame of a batch like the Java client: one frame, and nothing after it. The checksums of the
 * header and of each block must be right. The size and the checksum of the content do not count: Java ignores them.
 * Unlike the older Java clients, this reads blocks that refer to the blocks before them, as librdkafka does.
 * Format: github.com/lz4/lz4, doc/lz4_Frame_format.md and doc/lz4_Block_format.md.
 */
import { Undecodable } from './record-batch.ts'

const MAGIC = 0x184d2204
const VERSION_MASK = 0xc0
const VERSION = 0x40
const INDEPENDENT = 0x20
const BLOCK_CHECKSUM = 0x10
const CONTENT_SIZE = 0x08
const CONTENT_CHECKSUM = 0x04
/** A reserved bit, and a dictionary, which nobody has. */
const RESERVED_FLAGS = 0x03
const STORED = 0x8000_0000
/** Blocks refer to this many bytes before them. */
const WINDOW_BYTES = 65_536
/** LZ4 makes at most 255 bytes of one. */
const RATIO_MAX = 255
/** Bytes after which what such blocks became begins anew, with a copy of the window: blocks can have a single byte. */
const LINKED_BYTES = 1024 * 1024

/** Yields one block after the other. @throws Undecodable */
export function* lz4Blocks(bytes: Buffer): Generator<Buffer> {
  if (bytes.length < 7 || bytes.readUInt32LE(0) !== MAGIC) throw damaged()
  const flags = bytes.readUInt8(4)
  const descriptor = bytes.readUInt8(5)
  const size = descriptor >> 4
  if ((flags & VERSION_MASK) !== VERSION || flags & RESERVED_FLAGS) throw damaged()
  if (descriptor & 0x8f || size < 4) throw damaged()
  const blockBytesMax = 2 ** (8 + 2 * size)
  let at = 6 + (flags & CONTENT_SIZE ? 8 : 0)
  if (at >= bytes.length || bytes[at] !== ((xxh32(bytes, 4, at) >>> 8) & 0xff)) throw damaged()
  at++
  // Of blocks that refer to those before them: what they became, one after the other.
  let to: Buffer = EMPTY
  let filled = 0
  for (;;) {
    const header = read32(bytes, at)
    const length = header & ~STORED
    at += 4
    if (length === 0) break
    if (length > blockBytesMax || at + length > bytes.length) throw damaged()
    const isStored = header >= STORED
    const from = bytes.subarray(at, at + length)
    const room = isStored ? length : Math.min(blockBytesMax, length * RATIO_MAX)
    if (flags & INDEPENDENT) {
      to = EMPTY
      filled = 0
    }
    if (to.length - filled < room && !(flags & INDEPENDENT && isStored)) {
      const window = to.subarray(Math.max(0, filled - WINDOW_BYTES), filled)
      to = Buffer.allocUnsafe(window.length + Math.max(room, flags & INDEPENDENT ? 0 : LINKED_BYTES))
      filled = window.copy(to)
    }
    const begin = filled
    if (isStored) filled += from.copy(to, begin)
    else filled = decodeBlock(from, to.subarray(0, begin + room), begin)
    const block = flags & INDEPENDENT && isStored ? from : to.subarray(begin, filled)
    if (flags & BLOCK_CHECKSUM) {
      if (read32(bytes, at + length) !== xxh32(bytes, at, at + length)) throw damaged()
      at += 4
    }
    at += length
    if (block.length > 0) yield block
  }
  // The checksum of the content is not compared, and must be there.
  if (flags & CONTENT_CHECKSUM) read32(bytes, at)
}

const EMPTY = Buffer.alloc(0)
const damaged = (): Undecodable => new Undecodable('not_decompressed')

const read32 = (bytes: Buffer, at: number): number => {
  if (at + 4 > bytes.length) throw damaged()
  return bytes.readUInt32LE(at)
}

const MATCH_BYTES_MIN = 4

/**
 * @param to its first bytes are those before the block, to which it may refer
 * @returns the end of what the block became
 */
const decodeBlock = (from: Buffer, to: Buffer, begin: number): number => {
  let at = 0
  let end = begin
  const lengthFrom = (nibble: number): number => {
    let length = nibble
    for (let byte = nibble === 15 ? 255 : 0; byte === 255; length += byte) {
      byte = from[at++] ?? -1
      if (byte === -1) throw damaged()
    }
    return length
  }
  for (;;) {
    const token = from[at++]
    if (token === undefined) throw damaged()
    const literals = lengthFrom(token >> 4)
    if (at + literals > from.length || end + literals > to.length) throw damaged()
    from.copy(to, end, at, at + literals)
    at += literals
    end += literals
    // The last sequence has literals only.
    if (at === from.length) return end
    if (at + 2 > from.length) throw damaged()
    const distance = from.readUInt16LE(at)
    at += 2
    const length = lengthFrom(token & 15) + MATCH_BYTES_MIN
    if (distance === 0 || distance > end || end + length > to.length) throw damaged()
    repeat(to, end, distance, length)
    end += length
  }
}

/** Copies bytes to `end` from `distance` before it. The two ranges overlap if the distance is the shorter one. */
const repeat = (bytes: Buffer, end: number, distance: number, length: number): void => {
  if (length <= 32) {
    for (let at = end; at < end + length; at++) bytes[at] = bytes[at - distance] as number
    return
  }
  // Each copy doubles the bytes that the next one can copy.
  for (let done = 0; done < length; ) {
    const part = Math.min(length - done, distance + done)
    bytes.copyWithin(end + done, end - distance, end - distance + part)
    done += part
  }
}

const PRIME_1 = 2_654_435_761
const PRIME_2 = 2_246_822_519
const PRIME_3 = 3_266_489_917
const PRIME_4 = 668_265_263
const PRIME_5 = 374_761_393

const rotate = (value: number, bits: number): number => (value << bits) | (value >>> (32 - bits))

/** The checksum of LZ4, xxHash32 with the seed 0, of the bytes between two indices. */
const xxh32 = (bytes: Buffer, from: number, to: number): number => {
  let at = from
  let hash = PRIME_5
  if (to - from >= 16) {
    const lanes = [PRIME_1 + PRIME_2, PRIME_2, 0, -PRIME_1]
    for (; at <= to - 16; at += 16) {
      for (let lane = 0; lane < 4; lane++) {
        const sum = ((lanes[lane] as number) + Math.imul(bytes.readUInt32LE(at + 4 * lane), PRIME_2)) | 0
        lanes[lane] = Math.imul(rotate(sum, 13), PRIME_1)
      }
    }
    hash = lanes.reduce((sum, lane, index) => sum + rotate(lane, [1, 7, 12, 18][index] ?? 0), 0)
  }
  hash = (hash + to - from) | 0
  for (; at <= to - 4; at += 4) {
    hash = Math.imul(rotate((hash + Math.imul(bytes.readUInt32LE(at), PRIME_3)) | 0, 17), PRIME_4)
  }
  for (; at < to; at++) {
    hash = Math.imul(rotate((hash + Math.imul(bytes[at] as number, PRIME_5)) | 0, 11), PRIME_1)
  }
  hash = Math.imul(hash ^ (hash >>> 15), PRIME_2)
  hash = Math.imul(hash ^ (hash >>> 13), PRIME_3)
  return (hash ^ (hash >>> 16)) >>> 0
}
