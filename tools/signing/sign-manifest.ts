/**
 * The signature of a manifest: a signed note beside it, whose text is the manifest byte for byte. So whoever has the
 * note has the manifest, also while `manifest.json` is being replaced.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type SigningKey, signNote } from '../../core/runtime/index.ts'
import { AS_USUAL, writeWhole } from '../whole-file.ts'

export const MANIFEST_FILE = 'manifest.json'
export const NOTE_FILE = 'manifest.note'

/** Signs the manifest of a directory. A note that is there already with these bytes is not written again. */
export const signFolder = async (directory: string, key: SigningKey): Promise<void> => {
  const note = signNote(await readFile(join(directory, MANIFEST_FILE)), key)
  const before = await readIfThere(join(directory, NOTE_FILE))
  if (before?.equals(note)) return
  await writeWhole(join(directory, NOTE_FILE), note.toString('utf8'), AS_USUAL)
}

export const readIfThere = (file: string): Promise<Buffer | undefined> =>
  readFile(file).catch((error: { code?: unknown }) => {
    if (error.code !== 'ENOENT') throw error
    return undefined
  })
