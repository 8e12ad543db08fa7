/**
 * The bytes of a segment: consecutive offsets of one partition, compressed, with their digest.
 *
 * A segment is two frames of zstd, so that `zstd -dc` reads it:
 * - the content: a line of JSON (`SegmentHeader`), then the entries;
 * - a frame that decoders skip: the SHA-256 of the first frame, as 64 hexadecimal digits.
 * The header names the SHA-256 of the segment before: the segments of a partition are a chain.
 *
 * An entry is: kind (1 byte: 0 record, 1 aborted record, 2 control record), offset (8), timestamp (8), the lengths of
 * key, value and headers (4 each, -1 for null), then their bytes. Numbers are big-endian and signed. Headers are
 * encoded as in a Kafka record: their number, then length and bytes of each name and value.
 */
import { createHash, hash } from 'node:crypto'
import { promisify } from 'node:util'
import { constants, zstdCompress, zstdDecompress } from 'node:zlib'
import { EncodedHeaders, kafkaTime, type LogEntry } from '../../core/log/index.ts'
import type { Stream } from '../../schemas/events.ts'
import { CommandError } from '../failures.ts'
import { ENTRY_BYTES_MAX, SEGMENT_BYTES } from '../limits.ts'

/** Identifies the log that an archive is made from. */
export type ArchivedSource = {
  readonly stream: Stream
  readonly cluster_id: string
  readonly topic: string
}
export type SegmentHeader = ArchivedSource & {
  readonly format: typeof SEGMENT_FORMAT
  readonly partition: number
  /** The first offset, and the offset after the last one. */
  readonly from: number
  readonly end: number
  /** SHA-256 of the segment before; `NO_SEGMENT` of the first one. */
  readonly previous: string
}
const SEGMENT_FORMAT = 'commission-segment-1'
export const NO_SEGMENT = '0'.repeat(64)
/** The digest of no records. */
export const NO_RECORDS = '0'.repeat(64)

/** The archive is damaged. Names the first fault that was found. */
export class ArchiveDamaged extends CommandError {
  override name = 'ArchiveDamaged'
}

const kindCodes = ['record', 'aborted', 'control'] as const satisfies readonly LogEntry['kind'][]
const FIXED_BYTES = 29

export const encodeEntry = ({ kind, offset, timestamp, key, value, headers }: LogEntry): Buffer => {
  const parts = [key, value, headers.bytes]
  const fixed = Buffer.allocUnsafe(FIXED_BYTES)
  fixed.writeInt8(kindCodes.indexOf(kind), 0)
  fixed.writeBigInt64BE(BigInt(offset), 1)
  fixed.writeBigInt64BE(kafkaTime(timestamp), 9)
  for (const [index, part] of parts.entries()) fixed.writeInt32BE(part === null ? -1 : part.length, 17 + 4 * index)
  return Buffer.concat([fixed, ...parts.filter(part => part !== null)])
}

/** @throws ArchiveDamaged if the entry is not whole */
const decodeEntry = (bytes: Buffer, at: number, name: string): { entry: LogEntry; next: number } => {
  const damaged = (): ArchiveDamaged => new ArchiveDamaged(`${name}: an entry is cut off or malformed`)
  if (at + FIXED_BYTES > bytes.length) throw damaged()
  let next = at + FIXED_BYTES
  const part = (index: number): Buffer | null => {
    const length = bytes.readInt32BE(at + 17 + 4 * index)
    if (length === -1) return null
    if (length < 0 || next + length > bytes.length) throw damaged()
    next += length
    return bytes.subarray(next - length, next)
  }
  const kind = kindCodes[bytes.readInt8(at)]
  const [key, value, headers] = [part(0), part(1), part(2)]
  if (kind === undefined || headers === null) throw damaged()
  const offset = Number(bytes.readBigInt64BE(at + 1))
  const timestamp = Number(bytes.readBigInt64BE(at + 9))
  return { entry: { kind, offset, timestamp, key, value, headers: new EncodedHeaders(headers) }, next }
}

/**
 * Adds an entry to the digest of a partition. The digest covers the records that readers see, with their offsets and
 * times. It does not depend on segments, so a restored log has the same digest.
 */
export const addEntryToDigest = (digest: string, entry: LogEntry, encoded: Buffer = encodeEntry(entry)): string =>
  entry.kind === 'record' ? hash('sha256', Buffer.concat([Buffer.from(digest, 'hex'), encoded])) : digest

const SKIPPABLE_FRAME = 0x184d2a50
const DIGEST_BYTES = 64
const TRAILER_BYTES = 8 + DIGEST_BYTES
const LINE_END = 0x0a

export const encodeSegment = async (
  header: Omit<SegmentHeader, 'format'>,
  entries: readonly Buffer[],
): Promise<{ bytes: Buffer; sha256: string }> => {
  const line = Buffer.from(`${JSON.stringify({ format: SEGMENT_FORMAT, ...header })}\n`)
  const params = { [constants.ZSTD_c_checksumFlag]: 1 }
  const frame = await promisify(zstdCompress)(Buffer.concat([line, ...entries]), { params })
  const sha256 = createHash('sha256').update(frame).digest('hex')
  const trailer = Buffer.alloc(TRAILER_BYTES)
  trailer.writeUInt32LE(SKIPPABLE_FRAME, 0)
  trailer.writeUInt32LE(DIGEST_BYTES, 4)
  trailer.write(sha256, 8, 'latin1')
  return { bytes: Buffer.concat([frame, trailer]), sha256 }
}

export type Segment = {
  readonly header: SegmentHeader
  readonly sha256: string
  readonly entries: readonly LogEntry[]
}

/**
 * Reads a segment, and checks its digest and its offsets.
 * @param name of the segment, for messages
 * @throws ArchiveDamaged that names the first fault
 */
export const openSegment = async (bytes: Buffer, name: string): Promise<Segment> => {
  if (bytes.length <= TRAILER_BYTES) throw new ArchiveDamaged(`${name}: it is cut off after ${bytes.length} bytes`)
  const frame = bytes.subarray(0, -TRAILER_BYTES)
  const trailer = bytes.subarray(-TRAILER_BYTES)
  const sha256 = createHash('sha256').update(frame).digest('hex')
  const isTrailer = trailer.readUInt32LE(0) === SKIPPABLE_FRAME && trailer.readUInt32LE(4) === DIGEST_BYTES
  const stated = trailer.toString('latin1', 8)
  if (!isTrailer || stated !== sha256) {
    throw new ArchiveDamaged(`${name}: its bytes were changed: its SHA-256 is ${sha256}, it states ${printed(stated)}`)
  }
  const maxOutputLength = SEGMENT_BYTES + ENTRY_BYTES_MAX
  const content = await promisify(zstdDecompress)(frame, { maxOutputLength }).catch(() => {
    throw new ArchiveDamaged(`${name}: it cannot be decompressed`)
  })
  const lineEnd = content.indexOf(LINE_END)
  const header = headerIn(content.toString('utf8', 0, lineEnd))
  if (header === undefined) throw new ArchiveDamaged(`${name}: expected a segment of ${SEGMENT_FORMAT}`)
  const entries: LogEntry[] = []
  for (let at = lineEnd + 1, wanted = header.from; at < content.length; wanted++) {
    const { entry, next } = decodeEntry(content, at, name)
    if (entry.offset !== wanted) {
      throw new ArchiveDamaged(`${name}: expected offset ${wanted}, got ${entry.offset}`)
    }
    entries.push(entry)
    at = next
  }
  if (header.from + entries.length !== header.end) {
    throw new ArchiveDamaged(`${name}: expected ${header.end - header.from} entries, got ${entries.length}`)
  }
  return { header, sha256, entries }
}

const printed = (text: string): string => (/^[0-9a-f]{64}$/.test(text) ? text : 'none')

const headerIn = (line: string): SegmentHeader | undefined => {
  try {
    const header: SegmentHeader = JSON.parse(line)
    return header.format === SEGMENT_FORMAT ? header : undefined
  } catch {
    return undefined
  }
}
