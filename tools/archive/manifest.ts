/**
 * The manifest of one topic in an archive: its source, and how far each partition goes. It is replaced with each
 * segment. Its size does not grow with the log: it names the last segment of each partition, and each segment names the
 * one before.
 */
import { createHash } from 'node:crypto'
import type { Stream } from '../../schemas/events.ts'
import { MANIFEST_FILE } from '../signing/sign-manifest.ts'
import { ArchiveDamaged, type ArchivedSource, NO_RECORDS, NO_SEGMENT } from './segment.ts'
import type { ArchiveTarget } from './target.ts'

const MANIFEST_FORMAT = 'commission-archive-1'
export const archivedStreams = ['events', 'api-keys'] as const satisfies readonly Stream[]

export type ArchivedPartition = {
  readonly partition: number
  /** Always 0: an archive is the whole log. */
  readonly from: number
  /** The offset after the last one. */
  readonly end: number
  /** Records that readers see. The other offsets are holes: control records, and records of aborted transactions. */
  readonly records: number
  readonly segments: number
  /** The first offset of the last segment, and its SHA-256. */
  readonly last_segment: number | null
  readonly last_sha256: string
  /** Of all records, with offsets and times. */
  readonly digest: string
}
export type BesideTopic = { readonly topic: string; readonly topic_id?: string }
export type ArchiveManifest = ArchivedSource & {
  readonly format: typeof MANIFEST_FORMAT
  /** An archive follows one topic. Absent if the brokers have no topic ids, or in an archive of an earlier version. */
  readonly topic_id?: string
  /** Of the topic where the archive began. `topic_id` can be noted later, beside records of another topic. */
  readonly begun_topic_id?: string
  /** The other topic of the installation, so that nobody can put archives of two together. Absent as `topic_id`. */
  readonly beside?: BesideTopic
  readonly partitions: readonly ArchivedPartition[]
}

export const newManifest = (source: ArchivedSource, partitions: number, topicId?: string): ArchiveManifest => ({
  format: MANIFEST_FORMAT,
  ...source,
  ...(topicId !== undefined && { topic_id: topicId, begun_topic_id: topicId }),
  partitions: Array.from({ length: partitions }, (_, partition) => ({
    partition,
    from: 0,
    end: 0,
    records: 0,
    segments: 0,
    last_segment: null,
    last_sha256: NO_SEGMENT,
    digest: NO_RECORDS,
  })),
})

const manifestPath = (stream: Stream): string => `${stream}/${MANIFEST_FILE}`
const SEGMENT_DIGITS = 20
const segmentFolder = (stream: Stream, partition: number): string => `${stream}/${partition}`
export const segmentPath = (stream: Stream, partition: number, from: number): string =>
  `${segmentFolder(stream, partition)}/${String(from).padStart(SEGMENT_DIGITS, '0')}.zst`

/** The first offsets of the segments of a partition, in order. */
export const listSegments = async (target: ArchiveTarget, stream: Stream, partition: number): Promise<number[]> =>
  (await target.list(segmentFolder(stream, partition)))
    .flatMap(name => {
      const [, from] = /^(\d{20})\.zst$/.exec(name) ?? []
      return from === undefined ? [] : [Number(from)]
    })
    .sort((a, b) => a - b)

/** Returns the manifest of a topic; undefined without a file. @throws ArchiveDamaged */
export const readManifest = async (target: ArchiveTarget, stream: Stream): Promise<ArchiveManifest | undefined> => {
  const path = manifestPath(stream)
  const bytes = await target.read(path)
  return bytes && parseManifest(bytes, stream, `${target.name}/${path}`)
}

/** @param name of the file, for messages @throws ArchiveDamaged */
export const parseManifest = (bytes: Buffer, stream: Stream, name: string): ArchiveManifest => {
  try {
    const { sha256, ...manifest }: ArchiveManifest & { sha256: string } = JSON.parse(bytes.toString('utf8'))
    if (manifest.format === MANIFEST_FORMAT && manifest.stream === stream && sha256 === sha256Of(manifest))
      return manifest
  } catch {
    throw new ArchiveDamaged(`${name}: it is not whole`)
  }
  throw new ArchiveDamaged(`${name}: its content was changed, or it is no manifest of ${MANIFEST_FORMAT}`)
}

export const writeManifest = async (target: ArchiveTarget, manifest: ArchiveManifest): Promise<void> => {
  await target.replace(manifestPath(manifest.stream), encodeManifest(manifest))
}

/** The bytes of the file. */
export const encodeManifest = (manifest: ArchiveManifest): Buffer =>
  Buffer.from(`${JSON.stringify({ ...manifest, sha256: sha256Of(manifest) }, null, 2)}\n`)

const sha256Of = (manifest: ArchiveManifest): string =>
  createHash('sha256').update(JSON.stringify(manifest)).digest('hex')
