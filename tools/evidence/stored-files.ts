/**
 * What is in a signed folder or archive, before any of it is read. In: a directory, or an archive in S3. Out: each path
 * with its kind. Promises: no symbolic link is followed; a file of a run that goes on, or was killed, is told from one
 * that somebody added.
 */
import type { Dirent } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { ArchiveTarget } from '../archive/target.ts'
import { isLockFile } from '../export/lock.ts'
import { CommandError } from '../failures.ts'

type FileKind = 'file' | 'folder' | 'symbolic link' | 'device'
/** `path`: below the directory, with `/`. */
export type StoredEntry = { readonly path: string; readonly kind: FileKind }

/** In order. @throws CommandError for an address that is no folder */
export const entriesIn = async (directory: string, isDeep: boolean, below = ''): Promise<StoredEntry[]> => {
  const found = await readdir(join(directory, below), { withFileTypes: true }).catch((error: { code?: unknown }) => {
    const { code } = error
    const why = code === 'ENOENT' ? 'there is none' : code === 'ENOTDIR' ? 'it is a file' : `cannot be read (${code})`
    throw new CommandError(`${join(directory, below)}: expected a folder: ${why}`)
  })
  const entries: StoredEntry[] = []
  for (const one of found.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = below === '' ? one.name : `${below}/${one.name}`
    const kind = kindOf(one)
    entries.push({ path, kind })
    if (isDeep && kind === 'folder') entries.push(...(await entriesIn(directory, isDeep, path)))
  }
  return entries
}

/** A store has files only. */
export const entriesOfStore = async (target: ArchiveTarget): Promise<StoredEntry[]> =>
  [...(await target.list(''))].sort().map(path => ({ path, kind: 'file' }))

const kindOf = (one: Dirent): FileKind => {
  if (one.isFile()) return 'file'
  if (one.isDirectory()) return 'folder'
  return one.isSymbolicLink() ? 'symbolic link' : 'device'
}

/** In words; undefined for an entry of the expected kind. */
export const wrongKind = ({ kind }: StoredEntry, expected: 'file' | 'folder'): string | undefined =>
  kind === expected ? undefined : `it is a ${kind}: expected a ${expected}, which is here itself`

/** Of a file that is not whole yet, the one that it becomes; undefined for any other file. */
export const finishedPath = (path: string): string | undefined =>
  /^(.+?)(?:\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?\.new$/.exec(path)?.[1] ?? /^(.+)\.partial$/.exec(path)?.[1]

export const isLockOfRun = ({ path, kind }: StoredEntry): boolean => kind === 'file' && isLockFile(path)

export const sayUnfinished = (name: string): string =>
  `${name}: of a run that goes on, or was killed. It is not part of what is signed`
