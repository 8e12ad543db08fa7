/**
 * Where an archive is stored. The only file that knows directories: another kind of storage implements `ArchiveTarget`.
 * Promises: a file is there whole or not at all, also when the power fails: temporary file, fsync, rename, fsync of the
 * directory. `stage` makes a file durable under a temporary name; `finish` gives it its name.
 */
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'

export type ArchiveTarget = {
  /** For messages. */
  readonly name: string
  /** Undefined if there is no such file. */
  readonly read: (path: string) => Promise<Buffer | undefined>
  /** The names of the files in a folder; none if there is no such folder. */
  readonly list: (folder: string) => Promise<readonly string[]>
  readonly stage: (path: string, bytes: Buffer) => Promise<void>
  /** Does nothing if the file has its name already. */
  readonly finish: (path: string) => Promise<void>
}

/** The ending of a file that is not finished. */
export const STAGED = '.new'

export const directoryTarget = (directory: string): ArchiveTarget => ({
  name: directory,
  read: path => readFile(join(directory, path)).catch(ifMissing(undefined)),
  list: folder => readdir(join(directory, folder)).catch(ifMissing<string[]>([])),
  stage: async (path, bytes) => {
    const file = join(directory, path)
    await makeFolders(directory, dirname(path))
    // A file of a killed process, or a link to another file: removed, never written through.
    await rm(`${file}${STAGED}`, { force: true })
    await using handle = await open(`${file}${STAGED}`, 'wx')
    await handle.writeFile(bytes)
    await handle.sync()
    await syncFolder(dirname(file))
  },
  finish: async path => {
    const file = join(directory, path)
    await rename(`${file}${STAGED}`, file).catch(ifMissing(undefined))
    await syncFolder(dirname(file))
  },
})

/** Creates the directory of an archive unless it exists. */
export const makeArchiveDirectory = async (directory: string): Promise<void> => {
  await mkdir(directory).catch(ifDirectory(directory))
}

/** Not recursive: Node's own never ends where the system creates no directory. */
const makeFolders = async (directory: string, folder: string): Promise<void> => {
  let at = directory
  for (const name of folder.split('/').filter(part => part !== '.')) {
    const parent = at
    at = join(at, name)
    const made = await mkdir(at).then(() => true, ifDirectory(at))
    if (made) await syncFolder(parent)
  }
}

const ifDirectory = (directory: string) => async (error: { code?: unknown }) => {
  if (error.code !== 'EEXIST' || !(await stat(directory)).isDirectory()) throw error
  return false
}

const syncFolder = async (folder: string): Promise<void> => {
  await using handle = await open(folder, 'r')
  await handle.sync()
}

const ifMissing =
  <Value>(value: Value) =>
  (error: { code?: unknown }): Value => {
    if (error.code !== 'ENOENT') throw error
    return value
  }
