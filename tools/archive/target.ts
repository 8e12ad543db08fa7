/**
 * Where an archive is stored. `ArchiveTarget` is all that the other files know of it. This file has the directory;
 * `s3/s3-target.ts` has S3; `open-target.ts` chooses.
 * Promises: a file is there whole or not at all, also when the power fails: temporary file, fsync, rename, fsync of the
 * directory.
 */
import { open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Lock, type LockSteps, lockDirectory } from '../export/lock.ts'
import { CommandError } from '../failures.ts'
import { makeDirectory, syncDirectory } from '../whole-file.ts'

export type ArchiveTarget = {
  /** For messages. */
  readonly name: string
  /** Undefined if there is no such file. */
  readonly read: (path: string) => Promise<Buffer | undefined>
  /** The names of the files in a folder, '' for all; none if there is no such folder. A store lists all below it. */
  readonly list: (folder: string) => Promise<readonly string[]>
  /** Stores a new file. @throws CommandError if there is one with other bytes */
  readonly create: (path: string, bytes: Buffer) => Promise<void>
  /** Stores a file in the place of the one that was read or written last. */
  readonly replace: (path: string, bytes: Buffer) => Promise<void>
  /** One run at a time may write. @throws CommandError while another one does */
  readonly lock: (steps: LockSteps) => Promise<Lock>
}

/** The ending of a file that is not whole yet. */
const UNFINISHED = '.new'

export const directoryTarget = (directory: string): ArchiveTarget => {
  const store = async (path: string, bytes: Buffer): Promise<void> => {
    const file = join(directory, path)
    await makeFolders(directory, dirname(path))
    // A file of a killed process, or a link to another file: removed, never written through.
    await rm(`${file}${UNFINISHED}`, { force: true })
    {
      await using handle = await open(`${file}${UNFINISHED}`, 'wx')
      await handle.writeFile(bytes)
      await handle.sync()
    }
    await rename(`${file}${UNFINISHED}`, file)
    await syncDirectory(dirname(file))
  }
  const read = (path: string) => readFile(join(directory, path)).catch(ifMissing(undefined))
  return {
    name: directory,
    read,
    list: folder => readdir(join(directory, folder)).catch(ifMissing<string[]>([])),
    create: async (path, bytes) => {
      const before = await read(path)
      if (before === undefined) return store(path, bytes)
      if (!before.equals(bytes)) throw new CommandError(otherRun(`${directory}/${path}`))
    },
    replace: store,
    lock: async steps => {
      await makeDirectory(directory, steps.say)
      return lockDirectory(directory, steps, 'archive')
    },
  }
}

/** The message about a file that this run did not write. */
export const otherRun = (name: string): string =>
  `${name}: another run has written it meanwhile. Let that run end, then run the same command again`

const makeFolders = async (directory: string, folder: string): Promise<void> => {
  let at = directory
  for (const name of folder.split('/').filter(part => part !== '.')) {
    const parent = at
    at = join(at, name)
    if (await makeDirectory(at)) await syncDirectory(parent)
  }
}

const ifMissing =
  <Value>(value: Value) =>
  (error: { code?: unknown }): Value => {
    if (error.code !== 'ENOENT') throw error
    return value
  }
