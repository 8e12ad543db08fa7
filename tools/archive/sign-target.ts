/**
 * Signs the manifests of an archive. Promises: after each new manifest comes its note. A run that is killed between the
 * two leaves the note of the manifest before, which is valid: the archive has only grown since. The next run signs it,
 * if its segments follow those that this key has signed before.
 */

import { checkNote, parseNote, type SigningKey, signNote } from '../signing/note.ts'
import { MANIFEST_FILE, NOTE_FILE } from '../signing/sign-manifest.ts'
import { type ArchiveManifest, archivedStreams, parseManifest, segmentPath } from './manifest.ts'
import { openSegmentAt } from './read-archive.ts'
import { ArchiveDamaged } from './segment.ts'
import type { ArchiveTarget } from './target.ts'

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

/**
 * Signs the manifests that are stored already, unless they are signed by this key.
 * @throws ArchiveDamaged if this key signed another log before: then somebody has changed the archive
 */
export const signStored = async (target: ArchiveTarget, key: SigningKey | undefined): Promise<void> => {
  for (const stream of key === undefined ? [] : archivedStreams) {
    const manifest = await target.read(`${stream}/${MANIFEST_FILE}`)
    const note = await target.read(`${stream}/${NOTE_FILE}`)
    if (key === undefined || manifest === undefined || note?.equals(signNote(manifest, key))) continue
    const name = `${target.name}/${stream}`
    const signed = note && textSignedBy(note, key, `${name}/${NOTE_FILE}`)
    if (signed !== undefined) {
      const before = parseManifest(signed, stream, `${name}/${NOTE_FILE}`)
      await requireContinues(target, before, parseManifest(manifest, stream, `${name}/${MANIFEST_FILE}`))
    }
    await target.replace(`${stream}/${NOTE_FILE}`, signNote(manifest, key))
  }
}

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
): Promise<void> => {
  const refuse = (path: string): never => {
    throw new ArchiveDamaged(`${target.name}/${path}: it does not follow what is signed. Nothing is signed: verify it`)
  }
  const isSameLog = signed.cluster_id === now.cluster_id && signed.topic === now.topic
  if (!isSameLog || now.partitions.length < signed.partitions.length) refuse(`${now.stream}/${MANIFEST_FILE}`)
  for (const { partition, end, last_sha256 } of now.partitions) {
    const before = signed.partitions[partition]
    let at = before?.end ?? 0
    // Of a partition without a segment, the first one names none.
    let previous = before?.last_sha256
    while (at < end) {
      const { header, sha256 } = await openSegmentAt(target, now, partition, at)
      const follows = previous === undefined || header.previous === previous
      if (!follows || header.end <= at) refuse(segmentPath(now.stream, partition, at))
      at = header.end
      previous = sha256
    }
    if (at !== end || (previous !== undefined && previous !== last_sha256)) refuse(`${now.stream}/${MANIFEST_FILE}`)
  }
}
