/**
 * Reads archives. In: an archive. Out: its segments in order, each checked, or entries from any offset on.
 * Promises: the first thing that is wrong is named, with its file: a changed byte, a lost segment, a log that is
 *   shorter or longer than its manifest, streams of two installations. Nothing is written.
 */

import type { LogReader } from '../../core/log/index.ts'
import type { Stream } from '../../schemas/events.ts'
import { CommandError } from '../failures.ts'
import { SEGMENTS_AHEAD, SMALL_SEGMENT_BYTES, THROTTLED_RECORDS } from '../limits.ts'
import { NOTE_FILE } from '../signing/sign-manifest.ts'
import {
  type ArchivedPartition,
  type ArchiveManifest,
  archivedStreams,
  listSegments,
  readManifest,
  segmentPath,
} from './manifest.ts'
import {
  ArchiveDamaged,
  addEntryToDigest,
  NO_RECORDS,
  NO_SEGMENT,
  openSegment,
  type Segment,
  type SegmentHeader,
} from './segment.ts'
import type { ArchiveTarget } from './target.ts'
import type { Throttle } from './throttle.ts'

export type Manifests = Readonly<Record<Stream, ArchiveManifest>>
/** `signed`: the manifests that are signed, which may end earlier. */
export type VouchedManifests = { readonly manifests: Manifests; readonly signed?: Manifests }

/** @throws ArchiveDamaged, also for streams of two installations; CommandError if there is no archive */
export const readManifests = async (target: ArchiveTarget): Promise<Manifests> => {
  const [events, keys] = [await readManifest(target, 'events'), await readManifest(target, 'api-keys')]
  if (events === undefined && keys === undefined) throw new CommandError(`there is no archive in ${target.name}`)
  if (events && keys) {
    const manifests = { events, 'api-keys': keys }
    requireOneInstallation(target, manifests)
    return manifests
  }
  // The first run was killed between its first two files, before any record.
  if (events?.partitions.every(({ end }) => end === 0))
    throw new CommandError(`the archive in ${target.name} was only begun: run archive again`)
  const lost: Stream = events === undefined ? 'events' : 'api-keys'
  throw new ArchiveDamaged(`${target.name}/${lost}/manifest.json: this file is lost`)
}

/**
 * The keys of one installation open the pay of its own events only. An archive of an earlier version names no topic
 * beside its own one.
 * @throws ArchiveDamaged
 */
export const requireOneInstallation = ({ name }: ArchiveTarget, { events, 'api-keys': keys }: Manifests): void => {
  for (const [one, other] of [[events, keys] as const, [keys, events] as const]) {
    const refuse = (field: string, ours: string, theirs: string): never => {
      const what = `${field}: ${one.stream} has ${ours}, ${other.stream} has ${theirs}`
      throw new ArchiveDamaged(`${name}: its streams are not of one installation: ${what}`)
    }
    const { cluster_id, beside } = one
    if (cluster_id !== other.cluster_id) refuse('cluster', cluster_id, other.cluster_id)
    if (beside === undefined) continue
    if (beside.topic !== other.topic) refuse('topic beside it', beside.topic, other.topic)
    if (beside.topic_id !== undefined && other.topic_id !== undefined && beside.topic_id !== other.topic_id) {
      refuse('id of the topic beside it', beside.topic_id, other.topic_id)
    }
  }
}

/** Returns the number of offsets of all partitions. */
export const offsetsIn = (manifests: Manifests): number =>
  archivedStreams.flatMap(stream => manifests[stream].partitions).reduce((sum, { end }) => sum + end, 0)

/**
 * Yields the segments of a partition in order.
 * @param onUnnamed called with a segment after the last one that the manifest names
 * @param signed the same partition in the signed manifest, which ends here or earlier
 * @throws ArchiveDamaged that names the first fault
 */
export async function* segmentsOf(
  target: ArchiveTarget,
  manifest: ArchiveManifest,
  archived: ArchivedPartition,
  onUnnamed: (segment: Segment) => void = () => undefined,
  signed?: ArchivedPartition,
): AsyncGenerator<Segment> {
  const { stream } = manifest
  const { partition, end, last_segment, last_sha256 } = archived
  const where = `${target.name}/${stream}/${partition}`
  let next = 0
  let previous = NO_SEGMENT
  let count = 0
  const starts = await listSegments(target, stream, partition)
  const read = async (from: number) => ({ from, bytes: await target.read(segmentPath(stream, partition, from)) })
  const isSmall = ({ bytes }: Awaited<ReturnType<typeof read>>): boolean => (bytes?.length ?? 0) <= SMALL_SEGMENT_BYTES
  for await (const { from, bytes } of readAhead(starts, read, isSmall)) {
    const path = segmentPath(stream, partition, from)
    if (from > end) {
      if (await hasGrown(target, manifest, archived)) break
      throw new ArchiveDamaged(`${where}: the log is longer than its manifest, which ends at ${end}`)
    }
    if (from > next) throw new ArchiveDamaged(`${where}: the segment that begins with offset ${next} is lost`)
    if (from < next) throw new ArchiveDamaged(`${target.name}/${path}: its offsets are in the segment before it`)
    const segment = await openBytes(bytes, target, manifest, partition, from)
    if (segment.header.previous !== previous) {
      const what = `expected ${previous}, got ${segment.header.previous}`
      throw new ArchiveDamaged(`${target.name}/${path}: the SHA-256 of the segment before it: ${what}`)
    }
    // A run stores a segment, then the manifest that names it. Between the two the segment does not count.
    if (from === end) {
      if (!(await hasGrown(target, manifest, archived))) onUnnamed(segment)
      continue
    }
    // Each segment names the one before: the last signed one vouches for all before it.
    const isSignedEnd = signed !== undefined && from < signed.end && segment.header.end >= signed.end
    if (isSignedEnd && segment.sha256 !== signed.last_sha256) {
      const what = `${stream}/${NOTE_FILE} does not name this segment: the archive is not the one that was signed`
      throw new ArchiveDamaged(`${target.name}/${path}: ${what}`)
    }
    yield segment
    previous = segment.sha256
    next = segment.header.end
    count++
  }
  if (next > end) throw new ArchiveDamaged(`${where}: the log is longer than its manifest: ${next} offsets, not ${end}`)
  if (next < end) {
    const lost = last_segment !== null && last_segment >= next
    const what = `the log ends at ${next}, its manifest at ${end}`
    throw new ArchiveDamaged(`${where}: ${lost ? `the segment that begins with offset ${next} is lost: ` : ''}${what}`)
  }
  if (previous !== last_sha256 || count !== archived.segments) {
    throw new ArchiveDamaged(`${where}: the segments are not those that the manifest names`)
  }
}

/** Reads in order, and after a small value up to SEGMENTS_AHEAD at once: each request to a store takes its time. */
export async function* readAhead<Item, Value>(
  items: readonly Item[],
  read: (item: Item) => Promise<Value>,
  isSmall: (value: Value) => boolean,
): AsyncGenerator<Value> {
  const reading: Promise<Value>[] = []
  let atOnce = 1
  for (const item of items) {
    const value = read(item)
    // Thrown in its turn.
    value.catch(() => undefined)
    reading.push(value)
    while (reading.length >= atOnce) yield* next()
  }
  while (reading.length > 0) yield* next()

  async function* next(): AsyncGenerator<Value> {
    for (const value of reading.splice(0, 1)) {
      const done = await value
      atOnce = isSmall(done) ? SEGMENTS_AHEAD : 1
      yield done
    }
  }
}

/** True if a run has added segments since the manifest was read. */
const hasGrown = async (
  target: ArchiveTarget,
  { stream }: ArchiveManifest,
  { partition, end }: ArchivedPartition,
): Promise<boolean> => {
  const { end: now = 0 } = (await readManifest(target, stream))?.partitions[partition] ?? {}
  return now > end
}

/** Reads the segment that begins with an offset, and checks that it is of this log. @throws ArchiveDamaged */
export const openSegmentAt = async (
  target: ArchiveTarget,
  manifest: ArchiveManifest,
  partition: number,
  from: number,
): Promise<Segment> => {
  const bytes = await target.read(segmentPath(manifest.stream, partition, from))
  return openBytes(bytes, target, manifest, partition, from)
}

const openBytes = async (
  bytes: Buffer | undefined,
  target: ArchiveTarget,
  { stream, cluster_id, topic }: ArchiveManifest,
  partition: number,
  from: number,
): Promise<Segment> => {
  const name = `${target.name}/${segmentPath(stream, partition, from)}`
  if (bytes === undefined) throw new ArchiveDamaged(`${name}: this segment is lost`)
  const segment = await openSegment(bytes, name)
  const expected = { stream, cluster_id, topic, partition, from }
  for (const field of ['stream', 'cluster_id', 'topic', 'partition', 'from'] as const) {
    if (segment.header[field] === expected[field]) continue
    throw new ArchiveDamaged(`${name}: ${field}: expected ${expected[field]}, got ${segment.header[field]}`)
  }
  return segment
}

/**
 * Reads a whole partition again, and compares it with its manifest.
 * @returns what was verified
 * @throws ArchiveDamaged
 */
const verifyPartition = async (
  target: ArchiveTarget,
  manifest: ArchiveManifest,
  archived: ArchivedPartition,
  signed: ArchivedPartition | undefined,
  onDone: Throttle,
  onUnnamed: (segment: Segment) => void,
): Promise<VerifiedChain> => {
  const chain = new Map<number, string>()
  let digest = NO_RECORDS
  let records = 0
  const where = `${target.name}/${manifest.stream}/${archived.partition}`
  for await (const { header, sha256, entries } of segmentsOf(target, manifest, archived, onUnnamed, signed)) {
    chain.set(header.from, sha256)
    for (let at = 0; at < entries.length; at += THROTTLED_RECORDS) {
      const some = entries.slice(at, at + THROTTLED_RECORDS)
      for (const entry of some) {
        digest = addEntryToDigest(digest, entry)
        if (entry.kind === 'record') records++
      }
      await onDone(some.length)
    }
  }
  if (records === archived.records && digest === archived.digest) return chain
  const what = `${records} records with digest ${digest}`
  throw new ArchiveDamaged(
    `${where}: the manifest has ${archived.records} records with digest ${archived.digest}, not ${what}`,
  )
}

/** The SHA-256 of each segment of a partition, by its first offset. */
export type VerifiedChain = ReadonlyMap<number, string>

/**
 * Verifies a partition up to its end in the manifest. Segments after that were added since the manifest was read.
 * @param signed the same partition in the signed manifest
 * @throws ArchiveDamaged that names the first fault
 */
export const verifyChain = async (
  target: ArchiveTarget,
  manifest: ArchiveManifest,
  archived: ArchivedPartition,
  onSegment: (segment: Segment) => void,
  signed?: ArchivedPartition,
): Promise<VerifiedChain> => {
  const chain = new Map<number, string>()
  if (archived.end === 0) return chain
  for await (const segment of segmentsOf(target, manifest, archived, undefined, signed)) {
    const { header, sha256 } = segment
    chain.set(header.from, sha256)
    onSegment(segment)
    if (header.end === archived.end && sha256 === archived.last_sha256 && chain.size === archived.segments) break
  }
  return chain
}

type VerifySteps = {
  readonly report: (progress: { readonly done: number; readonly total: number }) => void
  readonly throttle?: Throttle
  /** Told about a stored segment that no manifest names yet: it does not count. */
  readonly onUnnamed?: (segment: UnnamedSegment) => void
}
export type UnnamedSegment = Pick<SegmentHeader, 'stream' | 'partition' | 'from'> & {
  readonly path: string
  readonly offsets: number
}

/** @param name of the archive */
export const sayUnnamed = (name: string, { stream, partition, from, offsets }: UnnamedSegment): string => {
  const what = `the segment that begins with offset ${from} is stored, and the manifest does not name it`
  return `${name}/${stream}/${partition}: ${what}: its ${offsets} offsets do not count. The next run of archive takes it in`
}

/** An archive, and a reader of each of its streams. */
export type ArchivedLogs = { readonly manifests: Manifests; readonly archived: (stream: Stream) => LogReader }

/**
 * @param against manifests to compare with; by default those of the archive
 * @returns readers that refuse a segment that was replaced since
 * @throws ArchiveDamaged: the first fault
 */
export const verifyArchive = async (
  target: ArchiveTarget,
  { report, throttle, onUnnamed = () => undefined }: VerifySteps,
  signal: AbortSignal,
  against?: VouchedManifests,
): Promise<ArchivedLogs> => {
  const { manifests, signed } = against ?? { manifests: await readManifests(target) }
  const total = offsetsIn(manifests)
  const verified = { events: new Map<number, VerifiedChain>(), 'api-keys': new Map<number, VerifiedChain>() }
  let done = 0
  for (const stream of archivedStreams) {
    for (const archived of manifests[stream].partitions) {
      const onDone = async (offsets: number): Promise<void> => {
        signal.throwIfAborted()
        done += offsets
        report({ done, total })
        await throttle?.(offsets)
      }
      const { partition } = archived
      const part = signed?.[stream].partitions[partition]
      const onSegment = ({ header: { from }, entries }: Segment): void =>
        onUnnamed({ stream, partition, from, path: segmentPath(stream, partition, from), offsets: entries.length })
      const chain = await verifyPartition(target, manifests[stream], archived, part, onDone, onSegment)
      verified[stream].set(partition, chain)
    }
  }
  return { manifests, archived: stream => readArchivedLog(target, manifests[stream], verified[stream]) }
}

/** Returns the last of ascending numbers up to a bound. Searches by halves: an archive can have a million segments. */
export const lastUpTo = (ascending: readonly number[], bound: number): number | undefined => {
  let [low, high] = [0, ascending.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((ascending[middle] ?? 0) <= bound) low = middle + 1
    else high = middle
  }
  return ascending[low - 1]
}

/**
 * Reads an archive like a log in Kafka, from any offset on. `verifyArchive` and `verifyChain` check it before.
 * @param chains by partition, the verified segments: refuses a segment that was replaced since
 */
export const readArchivedLog = (
  target: ArchiveTarget,
  manifest: ArchiveManifest,
  chains?: ReadonlyMap<number, VerifiedChain>,
): LogReader => {
  const starts = new Map<number, readonly number[]>()
  const opened = new Map<number, Segment>()
  return {
    topic: manifest.topic,
    read: async (partition, from) => {
      const archived = manifest.partitions[partition]
      if (archived === undefined) throw new Error('a partition that the archive does not have')
      const { end } = archived
      if (from >= end) return { entries: [], end }
      const all = starts.get(partition) ?? (await listSegments(target, manifest.stream, partition))
      starts.set(partition, all)
      const start = lastUpTo(all, from) ?? 0
      const before = opened.get(partition)
      const segment = before?.header.from === start ? before : await openSegmentAt(target, manifest, partition, start)
      if (chains !== undefined && chains.get(partition)?.get(start) !== segment.sha256) {
        const path = segmentPath(manifest.stream, partition, start)
        throw new ArchiveDamaged(`${target.name}/${path}: it was replaced after it was verified`)
      }
      // Without this, a reader would ask for the same offset for ever.
      if (segment.header.end <= from) {
        const where = `${target.name}/${manifest.stream}/${partition}`
        throw new ArchiveDamaged(`${where}: the segment that begins with offset ${segment.header.end} is lost`)
      }
      opened.set(partition, segment)
      return { entries: from === start ? segment.entries : segment.entries.slice(from - start), end }
    },
  }
}
