/**
 * Compressed bytes in unusual forms. Of `read`, the Java client of Kafka 4.3 reads exactly the given bytes. It refuses
 * those of `refused`.
 */
import { constants, crc32, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { compressFrameSync } from 'lz4-napi'
import { compressSync } from 'snappy'

export const [NONE, GZIP, SNAPPY, LZ4, ZSTD] = [0, 1, 2, 3, 4] as const
export type Compress = (bytes: Buffer) => Buffer
type Form = { readonly codec: number; readonly compress: Compress }

const cat = (...parts: readonly (Buffer | string | readonly number[])[]): Buffer =>
  Buffer.concat(parts.map(part => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(part as Buffer))))
const uint32LE = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value >>> 0)
  return bytes
}
const int32BE = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}
/** Two parts, and no border of a record between them. */
const halves = (bytes: Buffer): [Buffer, Buffer] => [bytes.subarray(0, 100), bytes.subarray(100)]
/** The first record, and the rest. */
export const firstRecord = (bytes: Buffer): [Buffer, Buffer] => {
  let at = 0
  let size = 0
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++] ?? 0
    size |= (byte & 0x7f) << shift
    if (byte < 0x80) break
  }
  const end = at + (size >>> 1)
  return [bytes.subarray(0, end), bytes.subarray(end)]
}
const withByte = (bytes: Buffer, at: number): Buffer => {
  const changed = Buffer.from(bytes)
  const index = at < 0 ? bytes.length + at : at
  changed[index] = (changed[index] ?? 0) ^ 1
  return changed
}

const gzipMember = (bytes: Buffer, flags: number, extra: Buffer): Buffer =>
  cat([0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 255], extra, deflateRawSync(bytes), trailerOf(bytes))
const trailerOf = (bytes: Buffer): Buffer => cat(uint32LE(crc32(bytes)), uint32LE(bytes.length))
const headerChecksum = (): Buffer => {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16LE(crc32(Buffer.from([0x1f, 0x8b, 8, 2, 0, 0, 0, 0, 0, 255])) & 0xffff)
  return bytes
}

const zstd = (bytes: Buffer, params: Record<number, number> = {}): Buffer => zstdCompressSync(bytes, { params })
const checked = { [constants.ZSTD_c_checksumFlag]: 1 }
const skippable = cat(uint32LE(0x184d2a53), uint32LE(5), 'hello')
/** A frame of one block that is not compressed. */
const zstdFrame = (bytes: Buffer, window: number): Buffer =>
  cat([0x28, 0xb5, 0x2f, 0xfd, 0, window], uint32LE((bytes.length << 3) | 1).subarray(0, 3), bytes)
const windowOf = (log: number): number => (log - 10) << 3

const LZ4_MAGIC = [0x04, 0x22, 0x4d, 0x18]
/** A frame of blocks that are not compressed: a header that the library does not write has another checksum. */
const lz4Frame = (header: readonly number[], ...blocks: readonly Buffer[]): Buffer =>
  cat(LZ4_MAGIC, header, ...blocks.flatMap(block => [uint32LE(block.length | 0x8000_0000), block]), uint32LE(0))
/** Version 1, independent blocks of at most 64 KiB, with the checksum of this header. */
const LZ4_PLAIN = [0x60, 0x40, 0x82]
/** The same with a size of the content: 5. */
const LZ4_SIZED = [0x68, 0x40, 5, 0, 0, 0, 0, 0, 0, 0, 0x61]
const lz4 = (bytes: Buffer, options = {}): Buffer => compressFrameSync(bytes, options)

const XERIAL = [0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0]
const xerialHeader = (version = 1): Buffer => cat(XERIAL, int32BE(version), int32BE(version))
const block = (bytes: Buffer): Buffer => {
  const compressed = compressSync(bytes)
  return cat(int32BE(compressed.length), compressed)
}
const xerial = (...parts: readonly Buffer[]): Buffer => cat(xerialHeader(), ...parts.map(block))

const all = (codec: number, forms: Record<string, Compress>): Record<string, Form> =>
  Object.fromEntries(Object.entries(forms).map(([name, compress]) => [name, { codec, compress }]))

export const read: Readonly<Record<string, Form>> = {
  ...all(NONE, { 'no compression': bytes => bytes }),
  ...all(GZIP, {
    gzip: bytes => gzipSync(bytes),
    'gzip of two members': bytes => cat(...halves(bytes).map(part => gzipSync(part))),
    'gzip of two members with the border between records': bytes =>
      cat(...firstRecord(bytes).map(part => gzipSync(part))),
    'gzip with an empty member': bytes => cat(gzipSync(bytes), gzipSync('')),
    'gzip with a name': bytes => gzipMember(bytes, 8, cat('name\0')),
    'gzip with a comment': bytes => gzipMember(bytes, 16, cat('text\0')),
    'gzip with extra fields': bytes => gzipMember(bytes, 4, cat([3, 0], 'abc')),
    'gzip with a checksum of the header': bytes => gzipMember(bytes, 2, headerChecksum()),
    'gzip with reserved flags': bytes => gzipMember(bytes, 0xe0, cat()),
    'gzip and other bytes': bytes => cat(gzipSync(bytes), 'other bytes that are no member'),
    'gzip and zeros': bytes => cat(gzipSync(bytes), Buffer.alloc(30)),
  }),
  ...all(SNAPPY, {
    'snappy of one block': bytes => compressSync(bytes),
    'snappy of the Java client': bytes => xerial(bytes),
    'snappy of the Java client in two blocks': bytes => xerial(...halves(bytes)),
    'snappy of the Java client twice': bytes => cat(...halves(bytes).map(part => xerial(part))),
    'snappy of the Java client twice with the border between records': bytes =>
      cat(...firstRecord(bytes).map(part => xerial(part))),
    'snappy with two headers': bytes => cat(xerialHeader(), xerial(bytes)),
    'snappy of a later version': bytes => cat(xerialHeader(9), block(bytes)),
    'snappy with an empty block': bytes => cat(xerial(bytes), int32BE(1), [0]),
    'snappy and three bytes': bytes => cat(xerial(bytes), 'abc'),
  }),
  ...all(LZ4, {
    lz4: bytes => lz4(bytes),
    'lz4 with checksums of blocks': bytes => lz4(bytes, { blockChecksums: true }),
    'lz4 with a checksum of the content': bytes => lz4(bytes, { contentChecksum: true }),
    'lz4 with a wrong checksum of the content': bytes => withByte(lz4(bytes, { contentChecksum: true }), -1),
    'lz4 with a wrong size of the content': bytes => lz4Frame(LZ4_SIZED, bytes),
    'lz4 that is not compressed': bytes => lz4Frame(LZ4_PLAIN, ...halves(bytes)),
    'lz4 and other bytes': bytes => cat(lz4(bytes), 'other bytes'),
    'lz4 twice: only the first frame counts': bytes => cat(lz4(bytes), lz4(bytes)),
  }),
  ...all(ZSTD, {
    zstd: bytes => zstd(bytes),
    'zstd of two frames': bytes => cat(...halves(bytes).map(part => zstd(part))),
    'zstd of two frames with the border between records': bytes => cat(...firstRecord(bytes).map(part => zstd(part))),
    'zstd with a frame to skip before': bytes => cat(skippable, zstd(bytes)),
    'zstd with a frame to skip within': bytes =>
      cat(...halves(bytes).flatMap((part, at) => [at ? skippable : cat(), zstd(part)])),
    'zstd with a frame to skip behind': bytes => cat(zstd(bytes), skippable),
    'zstd with an empty frame': bytes => cat(zstd(bytes), zstd(Buffer.alloc(0))),
    'zstd with a checksum': bytes => zstd(bytes, checked),
    'zstd with the largest window': bytes => zstdFrame(bytes, windowOf(27)),
    'zstd and a frame that is cut off': bytes => cat(zstd(bytes), zstd(bytes).subarray(0, 9)),
  }),
}

export const refused: Readonly<Record<string, Form>> = {
  ...all(GZIP, {
    'gzip without its end': bytes => gzipSync(bytes).subarray(0, -3),
    'gzip cut off': bytes => gzipSync(bytes).subarray(0, -20),
    'gzip with a wrong checksum': bytes => withByte(gzipSync(bytes), -8),
    'gzip with a wrong size': bytes => withByte(gzipSync(bytes), -4),
    'gzip with a wrong checksum of the header': bytes => gzipMember(bytes, 2, cat([1, 1])),
    'gzip of two members with a gap': bytes => cat(...halves(bytes).map(part => cat(gzipSync(part), Buffer.alloc(5)))),
    'zlib in place of gzip': bytes => deflateSync(bytes),
    'no gzip': bytes => bytes,
  }),
  ...all(SNAPPY, {
    'snappy cut off': bytes => xerial(bytes).subarray(0, -2),
    'snappy of one block, cut off': bytes => compressSync(bytes).subarray(0, -2),
    'snappy of one block and a byte': bytes => cat(compressSync(bytes), 'x'),
    'snappy with a block of no bytes': bytes => cat(xerial(bytes), int32BE(0)),
    'snappy with a negative length': bytes => cat(xerial(bytes), int32BE(-1)),
    'snappy without its header': bytes => block(bytes),
    'no bytes of snappy': () => cat(),
  }),
  ...all(LZ4, {
    'lz4 without its end': bytes => lz4(bytes).subarray(0, -4),
    'lz4 with its end cut off': bytes => lz4(bytes).subarray(0, -2),
    'lz4 with a wrong checksum of a block': bytes => withByte(lz4(bytes, { blockChecksums: true }), -5),
    'lz4 without its checksum of the content': bytes => lz4(bytes, { contentChecksum: true }).subarray(0, -4),
    'lz4 with a wrong checksum of the header': bytes => lz4Frame([0x60, 0x40, 0x83], bytes),
    'lz4 of two frames': bytes => cat(...halves(bytes).map(part => lz4(part))),
    'lz4 of another version': bytes => lz4Frame([0x20, 0x40, 0x03], bytes),
    'lz4 with a frame to skip before': bytes => cat(skippable, lz4(bytes)),
    'lz4 of the old format': bytes => cat([0x02, 0x21, 0x4c, 0x18], lz4(bytes).subarray(7)),
    'lz4 with a block above its maximum': () => lz4Frame(LZ4_PLAIN, Buffer.alloc(70_000)),
    'lz4 with a block that is damaged': () => cat(LZ4_MAGIC, LZ4_PLAIN, uint32LE(5), [255, 255, 255, 255, 255]),
  }),
  ...all(ZSTD, {
    'zstd cut off': bytes => zstd(bytes).subarray(0, -3),
    'zstd without its checksum': bytes => zstd(bytes, checked).subarray(0, -4),
    'zstd with a wrong checksum': bytes => withByte(zstd(bytes, checked), -1),
    'zstd and other bytes': bytes => cat(zstd(bytes), 'other bytes'),
    'zstd and zeros': bytes => cat(zstd(bytes), Buffer.alloc(8)),
    'zstd with a window that is too large': bytes => zstdFrame(bytes, windowOf(27) | 1),
    'zstd with a window that is much too large': bytes => zstdFrame(bytes, windowOf(31)),
    'zstd with a dictionary': bytes =>
      cat([0x28, 0xb5, 0x2f, 0xfd, 1, windowOf(20), 7], zstdFrame(bytes, 0).subarray(6)),
    'zstd with reserved bits': bytes => cat([0x28, 0xb5, 0x2f, 0xfd, 8], zstdFrame(bytes, windowOf(20)).subarray(5)),
    'no zstd': bytes => bytes,
  }),
  ...all(5, { 'a compression that does not exist': bytes => bytes }),
}
