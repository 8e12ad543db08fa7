/**
 * Signs the manifests of an archive. Promises: after each new manifest comes its note. A run that is killed between the
 * two leaves the note of the manifest before, which is valid: the archive has only grown since. The next run signs it,
 * if its segments follow those that this key has signed before, and the log has each of their entries.
 */

import type { LogEntry } from '../../core/log/index.ts'
import { checkNote, parseNote, type SigningKey, signNote } from '../../core/runtime/index.ts'
import type { Stream } from '../../schemas/events.ts'
import { CommandError } from '../failures.ts'
import { MANIFEST_FILE, NOTE_FILE } from '../signing/sign-manifest.ts'
import { type ArchiveManifest, encodeManifest, newManifest, parseManifest, segmentPath } from './manifest.ts'
import { openSegmentAt } from './read-archive.ts'
import { ArchiveDamaged, type ArchivedSource, addEntryToDigest, NO_RECORDS, NO_SEGMENT } from './segment.ts'
import { type ArchiveTarget, otherRun } from './target.ts'

/**
 * A target that signs each manifest that is stored in it.
 * @param key undefined: nothing is signed
 * @param isSigning whether the archive was compared with its log: before that, nothing is signed
 */
export const signingTarget = (
  target: ArchiveTarget,
  key: SigningKey | undefined,
  isSigning = (): boolean => true,
): ArchiveTarget => {
  if (key === undefined) return target
  const read = new Set<string>()
  return {
    ...target,
    replace: async (path, bytes) => {
      await target.replace(path, bytes)
      if (!isSigning() || !path.endsWith(`/${MANIFEST_FILE}`)) return
      const note = `${path.slice(0, -MANIFEST_FILE.length)}${NOTE_FILE}`
      // A store replaces only an object that was read before.
      if (!read.has(note)) await target.read(note)
      read.add(note)
      await target.replace(note, signNote(bytes, key))
    },
  }
}

/** Compares stored entries, in order, with the log that they were read from. @throws StopError if one differs */
export type CompareWithLog = (stream: Stream, partition: number, entries: readonly LogEntry[]) => Promise<void>

/**
 * Signs the manifests that are stored already, unless they are signed by this key. Each entry that this key has not
 * signed yet is compared with the log before: another process may have stored it.
 * @param manifests those that this run continues
 * @throws ArchiveDamaged if this key signed another log before: then somebody has changed the archive
 */
export const signStored = async (
  target: ArchiveTarget,
  key: SigningKey | undefined,
  manifests: readonly ArchiveManifest[],
  { compare, say }: { readonly compare: CompareWithLog; readonly say: (line: string) => void },
): Promise<void> => {
  for (const now of key === undefined ? [] : manifests) {
    const { stream } = now
    const manifest = encodeManifest(now)
    const note = await target.read(`${stream}/${NOTE_FILE}`)
    if (key === undefined || note?.equals(signNote(manifest, key))) continue
    const name = `${target.name}/${stream}`
    if (!(await target.read(`${stream}/${MANIFEST_FILE}`))?.equals(manifest)) {
      throw new CommandError(otherRun(`${name}/${MANIFEST_FILE}`))
    }
    const signed = note && textSignedBy(note, key, `${name}/${NOTE_FILE}`)
    const before =
      signed === undefined
        ? newManifest(sourceIn(now), now.partitions.length)
        : parseManifest(signed, stream, `${name}/${NOTE_FILE}`)
    const unsigned = offsetsOf(now) - offsetsOf(before)
    if (unsigned > 0) say(`${name}: ${unsigned} offsets are not signed by this key: they are compared with the log`)
    await requireContinues(target, before, now, compare)
    await target.replace(`${stream}/${NOTE_FILE}`, signNote(manifest, key))
  }
}

const offsetsOf = ({ partitions }: ArchiveManifest): number => partitions.reduce((sum, { end }) => sum + end, 0)
const sourceIn = ({ stream, cluster_id, topic }: ArchiveManifest): ArchivedSource => ({ stream, cluster_id, topic })

/** Undefined for a note of other keys: another key signs from now on. @throws ArchiveDamaged for a wrong signature */
const textSignedBy = (bytes: Buffer, { verifier }: SigningKey, name: string): Buffer | undefined => {
  const note = parseNote(bytes)
  const outcome = note === undefined ? 'wrong' : checkNote(note, [verifier]).outcome
  if (outcome === 'wrong') throw new ArchiveDamaged(`${name}: its signature is not of its text. Nothing is signed`)
  return outcome === 'signed' ? note?.text : undefined
}

/** Each segment names the one before: those after the signed end must lead back to the signed ones. */
const requireContinues = async (
  target: ArchiveTarget,
  signed: ArchiveManifest,
  now: ArchiveManifest,
  compare: CompareWithLog,
): Promise<void> => {
  const refuse = (path: string): never => {
    throw new ArchiveDamaged(`${target.name}/${path}: it does not follow what is signed. Nothing is signed: verify it`)
  }
  const isSameLog = signed.cluster_id === now.cluster_id && signed.topic === now.topic
  if (!isSameLog || now.partitions.length < signed.partitions.length) refuse(`${now.stream}/${MANIFEST_FILE}`)
  for (const archived of now.partitions) {
    const { partition, end } = archived
    const before = signed.partitions[partition]
    let { end: at, last_sha256: previous, digest, records, segments } = before ?? NOTHING
    while (at < end) {
      const { header, sha256, entries } = await openSegmentAt(target, now, partition, at)
      if (header.previous !== previous || header.end <= at) refuse(segmentPath(now.stream, partition, at))
      await compare(now.stream, partition, entries)
      digest = entries.reduce((sum, entry) => addEntryToDigest(sum, entry), digest)
      records += entries.filter(({ kind }) => kind === 'record').length
      at = header.end
      previous = sha256
      segments++
    }
    const isWhole = at === end && previous === archived.last_sha256 && digest === archived.digest
    if (!isWhole || records !== archived.records || segments !== archived.segments) {
      refuse(`${now.stream}/${MANIFEST_FILE}`)
    }
  }
}

/** Of a partition without a segment. The first segment names none. */
const NOTHING = { end: 0, last_sha256: NO_SEGMENT, digest: NO_RECORDS, records: 0, segments: 0 }
