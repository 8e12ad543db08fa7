/**
 * The archive of one topic in one target, while it is written.
 *
 * In: entries of the log, in order. Out: segments, and the manifest that names the last one of each partition.
 * Promises: a kill at any moment leaves a valid archive, which the next run continues without a gap. A segment is
 *   stored, then the manifest names it: a segment that the manifest names is there. The next run takes in a segment
 *   that was stored and not named. A stored segment is never written again.
 * Can go wrong: the target has the archive of another log, or is damaged: refused before anything is written.
 */

import { sayUndecodable, undecodableBatchOf } from '../../core/ledger/index.ts'
import { createAdmitBatch, differingField, type LogEntry } from '../../core/log/index.ts'
import { StopError } from '../../core/runtime/index.ts'
import { CommandError } from '../failures.ts'
import { SEGMENT_BYTES, SEGMENTS_BYTES } from '../limits.ts'
import {
  type ArchivedPartition,
  type ArchiveManifest,
  type BesideTopic,
  newManifest,
  readManifest,
  segmentPath,
  writeManifest,
} from './manifest.ts'
import { openSegmentAt } from './read-archive.ts'
import { ArchiveDamaged, type ArchivedSource, addEntryToDigest, encodeEntry, encodeSegment } from './segment.ts'
import type { ArchiveTarget } from './target.ts'

/** Entries of a partition that are in no segment yet. */
type Growing = {
  readonly partition: number
  /** The offset after the last entry. */
  position: number
  /** The last entry, as encoded: the log must still have it when more is read. */
  last: Buffer | undefined
  entries: Buffer[]
  bytes: number
  records: number
  digest: string
  /** When the first of the entries came; milliseconds of any clock. */
  since: number
  /** The time of the last record; undefined before the first one. */
  time: number | undefined
  /** The time of the last record that is in a segment. */
  stored: number | undefined
  /** The end of the log when it was read last. */
  end: number
}

/** `isBehind`: the log has, or may have, records that are in no segment. `time`: of the last record that is in one. */
export type Reached = { readonly isBehind: boolean; readonly time: number | undefined }

export type TopicArchive = {
  readonly source: ArchivedSource
  readonly positions: () => readonly number[]
  /** Compares the last archived entry with what the log has there. @throws StopError if it is another one */
  readonly compareLast: (partition: number, entry: LogEntry | undefined) => void
  /** Notes the topic id and the other topic, once the last entries of all partitions were compared. */
  readonly noteTopics: (id: string | undefined, beside: BesideTopic) => Promise<void>
  /** Whether `cut` would write a segment. */
  readonly isDue: (olderThan: number) => boolean
  /** The offset to read from: that of the last archived entry, to check that the log still has it. */
  readonly readFrom: (partition: number) => number
  /** Takes entries from `readFrom` or the position on. @throws StopError if the last archived entry is another one */
  readonly add: (partition: number, entries: readonly LogEntry[], now: number) => void
  /** Writes a segment of each partition that has enough, or whose entries are older than `olderThan`. */
  readonly cut: (olderThan: number) => Promise<void>
  readonly manifest: () => ArchiveManifest
  /** Notes the end that a partition of the log has now. */
  readonly see: (partition: number, end: number) => void
  /** Of each partition. */
  readonly reached: () => readonly Reached[]
}

export const openTopicArchive = async (
  target: ArchiveTarget,
  source: ArchivedSource,
  partitions: number,
  assertHeld: () => Promise<void>,
  topicId?: string,
): Promise<TopicArchive> => {
  const { stream } = source
  const before = await readManifest(target, stream)
  if (before) assertSameLog(target, before, source, partitions, topicId)
  let manifest = before ?? newManifest(source, partitions, topicId)
  if (before === undefined) await writeManifest(target, manifest)
  const growing: Growing[] = []
  // Each partition has one growing segment in memory.
  const segmentBytes = Math.min(SEGMENT_BYTES, SEGMENTS_BYTES / manifest.partitions.length)
  for (const { partition } of manifest.partitions) {
    manifest = await takeInStored(target, manifest, partition)
    growing.push(await continueAt(target, manifest, partition))
  }
  const isDue = ({ entries, bytes, since }: Growing, olderThan: number): boolean =>
    entries.length > 0 && (bytes >= segmentBytes || since < olderThan)

  const closeSegment = async (part: Growing): Promise<void> => {
    const archived = archivedPartition(manifest, part.partition)
    const { partition, entries, position, records, digest } = part
    const { end: from, last_sha256: previous } = archived
    const { time } = part
    Object.assign(part, { entries: [], bytes: 0, records: 0 })
    const { bytes, sha256 } = await encodeSegment({ ...source, partition, from, end: position, previous }, entries)
    await assertHeld()
    await target.create(segmentPath(stream, partition, from), bytes)
    const next = withSegment(manifest, archived, { end: position, records, sha256, digest })
    await assertHeld()
    await writeManifest(target, next)
    manifest = next
    part.stored = time
  }
  const partOf = (partition: number): Growing => {
    const part = growing[partition]
    if (part === undefined) throw new Error('a partition that the topic did not have')
    return part
  }
  return {
    source,
    positions: () => growing.map(({ position }) => position),
    readFrom: partition => Math.max(0, partOf(partition).position - 1),
    add: (partition, entries, now) => {
      const part = partOf(partition)
      let rest = entries
      if (part.last !== undefined && entries[0]?.offset !== part.position) {
        const [again, ...others] = entries
        assertStillThere(source, part, again)
        rest = others
      }
      for (const entry of rest) {
        const encoded = encodeEntry(entry)
        if (part.entries.length === 0) part.since = now
        part.entries.push(encoded)
        part.bytes += encoded.length
        part.position = entry.offset + 1
        part.digest = addEntryToDigest(part.digest, entry, encoded)
        part.last = encoded
        if (entry.kind === 'record') part.records++
        part.time = entry.timestamp
      }
    },
    cut: async olderThan => {
      for (const part of growing) if (isDue(part, olderThan)) await closeSegment(part)
    },
    isDue: olderThan => growing.some(part => isDue(part, olderThan)),
    compareLast: (partition, entry) => assertStillThere(source, partOf(partition), entry),
    noteTopics: async (id, beside) => {
      const { partitions, ...head } = manifest
      const noted = { ...head, ...(id !== undefined && { topic_id: id }), beside, partitions }
      const isNew = manifest.beside === undefined || (id !== undefined && manifest.topic_id === undefined)
      if (!isNew) return
      await assertHeld()
      await writeManifest(target, noted)
      manifest = noted
    },
    manifest: () => manifest,
    see: (partition, end) => {
      partOf(partition).end = end
    },
    reached: () =>
      growing.map(({ partition, end, stored }) => {
        return { isBehind: archivedPartition(manifest, partition).end < end, time: stored }
      }),
  }
}

type Added = { readonly end: number; readonly records: number; readonly sha256: string; readonly digest: string }

/** The manifest with one more segment of a partition. */
const withSegment = (
  manifest: ArchiveManifest,
  archived: ArchivedPartition,
  { end, records, sha256, digest }: Added,
): ArchiveManifest => {
  const grown = {
    ...archived,
    end,
    records: archived.records + records,
    segments: archived.segments + 1,
    last_segment: archived.end,
    last_sha256: sha256,
    digest,
  }
  return { ...manifest, partitions: manifest.partitions.map(one => (one === archived ? grown : one)) }
}

const archivedPartition = (manifest: ArchiveManifest, partition: number): ArchivedPartition => {
  const archived = manifest.partitions[partition]
  if (archived === undefined) throw new Error('an archive without its partition')
  return archived
}

/** Names the segments that a killed run has stored without naming them. @throws ArchiveDamaged */
const takeInStored = async (
  target: ArchiveTarget,
  manifest: ArchiveManifest,
  partition: number,
): Promise<ArchiveManifest> => {
  const archived = archivedPartition(manifest, partition)
  const path = segmentPath(manifest.stream, partition, archived.end)
  if ((await target.read(path)) === undefined) return manifest
  const { header, sha256, entries } = await openSegmentAt(target, manifest, partition, archived.end)
  if (header.previous !== archived.last_sha256) {
    const what = `expected ${archived.last_sha256}, got ${header.previous}`
    throw new ArchiveDamaged(`${target.name}/${path}: the SHA-256 of the segment before it: ${what}`)
  }
  // An empty segment begins and ends at the same offset: it would be found and taken in again, without end.
  if (entries.length === 0) throw new ArchiveDamaged(`${target.name}/${path}: it has no entries`)
  const digest = entries.reduce((sum, entry) => addEntryToDigest(sum, entry), archived.digest)
  const records = entries.filter(({ kind }) => kind === 'record').length
  const next = withSegment(manifest, archived, { end: header.end, records, sha256, digest })
  await writeManifest(target, next)
  return takeInStored(target, next, partition)
}

/** Before its log was read, a partition counts as behind. */
const NOT_SEEN = Number.POSITIVE_INFINITY

/** Reads the last entry. @throws ArchiveDamaged */
const continueAt = async (target: ArchiveTarget, manifest: ArchiveManifest, partition: number): Promise<Growing> => {
  const { end, digest, last_segment, last_sha256 } = archivedPartition(manifest, partition)
  const part = { partition, position: end, entries: [], bytes: 0, records: 0, digest, since: 0, end: NOT_SEEN }
  if (last_segment === null) return { ...part, last: undefined, time: undefined, stored: undefined }
  const { header, sha256, entries } = await openSegmentAt(target, manifest, partition, last_segment)
  if (sha256 !== last_sha256 || header.end !== end) {
    const name = `${target.name}/${segmentPath(manifest.stream, partition, last_segment)}`
    throw new ArchiveDamaged(`${name}: it is not the last segment that the manifest names`)
  }
  const last = entries.at(-1)
  return { ...part, last: last && encodeEntry(last), time: last?.timestamp, stored: last?.timestamp }
}

const assertSameLog = (
  target: ArchiveTarget,
  before: ArchiveManifest,
  source: ArchivedSource,
  partitions: number,
  topicId: string | undefined,
): void => {
  const got = { ...source, partitions, ...(topicId !== undefined && { topic_id: topicId }) }
  const expected = { ...before, partitions: before.partitions.length }
  const field = differingField(expected, got)
  if (field === undefined) return
  const what = `${target.name} has the archive of another log of ${source.stream}`
  const next = field === 'topic_id' ? '. The topic was made anew: begin a new archive in another target' : ''
  throw new CommandError(`${what}: ${field}: expected ${expected[field]}, got ${got[field]}${next}. Nothing is changed`)
}

/** @throws StopError if the log was made anew, or ends before what was archived */
const assertStillThere = ({ topic }: ArchivedSource, part: Growing, entry: LogEntry | undefined): void => {
  const { partition, position, last } = part
  const where = { topic, partition, offset: position - 1 }
  if (entry === undefined) {
    const detail = `partition ${partition} of ${topic} ends before offset ${position}, which is archived`
    throw new StopError('records_deleted', detail, where)
  }
  if (last?.equals(encodeEntry(entry))) return
  const detail = `partition ${partition} of ${topic} has another record at offset ${position - 1} than the archive`
  throw new StopError('source_changed', detail, where)
}

/** Names batches that nobody can read, at their first records. Of many only some: publishers can send such records. */
export const namesUndecodable = ({ say, elapsed }: Says) => {
  const admit = createAdmitBatch(elapsed)
  return (entry: LogEntry, partition: number, { source }: TopicArchive): void => {
    const batch = undecodableBatchOf(entry)
    const line = batch?.first === entry.offset ? admit() : undefined
    if (batch === undefined || line === undefined) return
    const others = line.unnamed > 0 ? `; ${line.unnamed} more before it` : ''
    say(`partition ${partition} of ${source.topic}: ${sayUndecodable(batch)}${others}`)
    if (line.more === 0) say('further batches that cannot be read are not named for a minute')
  }
}

type Says = { readonly say: (text: string) => void; readonly elapsed: () => number }
