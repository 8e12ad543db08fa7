/**
 * Decompresses gzip like the Java client: member after member, each with a right checksum. Other bytes
 * after a member are ignored. Format: RFC 1952.
 */
import { setImmediate } from 'node:timers/promises'
import { crc32, createInflateRaw, inflateRawSync } from 'node:zlib'
import { inflate } from './inflate.ts'
import { Undecodable } from './record-batch.ts'

const MAGIC = 0x8b1f
const DEFLATE = 8
const HEADER_CHECKSUM = 0x02
const EXTRA = 0x04
const NAME = 0x08
const COMMENT = 0x10
const HEADER_BYTES = 10
const TRAILER_BYTES = 8
/**
 * A member after the first that decompresses to no more than this is decompressed at once: a stream for each of half a
 * million empty members takes a minute. Other work of the process has its turn after this many of them.
 */
const SMALL_BYTES = 16 * 1024
const TURN_MEMBERS = 100

/** @throws Undecodable */
export async function* gunzip(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0, members = 0; ; members++) {
    if (members % TURN_MEMBERS === TURN_MEMBERS - 1) await setImmediate()
    const begin = memberContent(bytes, at)
    if (begin === undefined) {
      if (at === 0) throw damaged()
      return
    }
    const small = members > 0 ? smallContent(bytes.subarray(begin)) : undefined
    const stream = small ? undefined : createInflateRaw()
    let checksum = 0
    let length = 0
    for await (const chunk of stream ? inflate(stream, [bytes.subarray(begin)]) : [small?.buffer ?? EMPTY]) {
      checksum = crc32(chunk, checksum)
      length = (length + chunk.length) >>> 0
      yield chunk
    }
    const end = begin + (stream?.bytesWritten ?? small?.bytesRead ?? 0)
    if (end + TRAILER_BYTES > bytes.length) throw damaged()
    if (bytes.readUInt32LE(end) !== checksum || bytes.readUInt32LE(end + 4) !== length) throw damaged()
    at = end + TRAILER_BYTES
  }
}

const EMPTY = Buffer.alloc(0)

type Small = { readonly buffer: Buffer; readonly bytesRead: number }

/** Returns the content of a small member; undefined if it is large or damaged: the stream decides. */
const smallContent = (bytes: Buffer): Small | undefined => {
  try {
    const options = { info: true, maxOutputLength: SMALL_BYTES, chunkSize: SMALL_BYTES }
    const { buffer, engine } = inflateRawSync(bytes, options) as unknown as {
      readonly buffer: Buffer
      readonly engine: { readonly bytesWritten: number }
    }
    return { buffer, bytesRead: engine.bytesWritten }
  } catch {
    return undefined
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
