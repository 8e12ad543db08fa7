/**
 * Decompresses gzip like the Java client: member after member, each with a right checksum. Other bytes
 * after a member are ignored. Format: RFC 1952.
 */
import { crc32, createInflateRaw } from 'node:zlib'
import { inflate } from './inflate.ts'
import { Undecodable } from './undecodable.ts'

const MAGIC = 0x8b1f
const DEFLATE = 8
const HEADER_CHECKSUM = 0x02
const EXTRA = 0x04
const NAME = 0x08
const COMMENT = 0x10
const HEADER_BYTES = 10
const TRAILER_BYTES = 8

/** @throws Undecodable */
export async function* gunzip(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; ; ) {
    const begin = memberContent(bytes, at)
    if (begin === undefined) {
      if (at === 0) throw damaged()
      return
    }
    const stream = createInflateRaw()
    let checksum = 0
    let length = 0
    for await (const chunk of inflate(stream, [bytes.subarray(begin)])) {
      checksum = crc32(chunk, checksum)
      length = (length + chunk.length) >>> 0
      yield chunk
    }
    const end = begin + stream.bytesWritten
    if (end + TRAILER_BYTES > bytes.length) throw damaged()
    if (bytes.readUInt32LE(end) !== checksum || bytes.readUInt32LE(end + 4) !== length) throw damaged()
    at = end + TRAILER_BYTES
  }
}

const damaged = (): Undecodable => new Undecodable('not_decompressed')

/** Returns where the content of the member begins whose header is at an index; undefined if there is no header. */
const memberContent = (bytes: Buffer, from: number): number | undefined => {
  if (from + HEADER_BYTES > bytes.length) return undefined
  if (bytes.readUInt16LE(from) !== MAGIC || bytes[from + 2] !== DEFLATE) return undefined
  const flags = bytes.readUInt8(from + 3)
  let at = from + HEADER_BYTES
  if (flags & EXTRA) {
    if (at + 2 > bytes.length) return undefined
    at += 2 + bytes.readUInt16LE(at)
  }
  for (const text of [NAME, COMMENT]) {
    if (!(flags & text)) continue
    const end = bytes.indexOf(0, at)
    if (end === -1) return undefined
    at = end + 1
  }
  if (flags & HEADER_CHECKSUM) {
    if (at + 2 > bytes.length) return undefined
    if (bytes.readUInt16LE(at) !== (crc32(bytes.subarray(from, at)) & 0xffff)) return undefined
    at += 2
  }
  return at <= bytes.length ? at : undefined
}
