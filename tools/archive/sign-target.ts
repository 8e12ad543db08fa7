/**
 * Signs the manifests of an archive. Promises: after each new manifest comes its note. A run that is killed between the
 * two leaves the note of the manifest before, which is valid: the archive has only grown since. The next run signs.
 */

import { type SigningKey, signNote } from '../signing/note.ts'
import { MANIFEST_FILE, NOTE_FILE } from '../signing/sign-manifest.ts'
import { archivedStreams } from './manifest.ts'
import type { ArchiveTarget } from './target.ts'

/** A target that signs each manifest that is stored in it. @param key undefined: nothing is signed */
export const signingTarget = (target: ArchiveTarget, key: SigningKey | undefined): ArchiveTarget => {
  if (key === undefined) return target
  const read = new Set<string>()
  return {
    ...target,
    replace: async (path, bytes) => {
      await target.replace(path, bytes)
      if (!path.endsWith(`/${MANIFEST_FILE}`)) return
      const note = `${path.slice(0, -MANIFEST_FILE.length)}${NOTE_FILE}`
      // A store replaces only an object that was read before.
      if (!read.has(note)) await target.read(note)
      read.add(note)
      await target.replace(note, signNote(bytes, key))
    },
  }
}

/** Signs the manifests that are stored already, unless they are signed by this key. */
export const signStored = async (target: ArchiveTarget, key: SigningKey | undefined): Promise<void> => {
  for (const stream of key === undefined ? [] : archivedStreams) {
    const manifest = await target.read(`${stream}/${MANIFEST_FILE}`)
    const note = await target.read(`${stream}/${NOTE_FILE}`)
    if (key === undefined || manifest === undefined || note?.equals(signNote(manifest, key))) continue
    await target.replace(`${stream}/${NOTE_FILE}`, signNote(manifest, key))
  }
}
