/**
 * Writes a file whole or not at all, also if several processes write it at the same time: each one writes a temporary
 * file of its own. Remains of a killed process are removed. A process whose temporary file was removed ends with an
 * error.
 *
 * A new file may have pay, and is closed to other users of the machine, unless the caller names another mode. A file
 * that is there keeps its own.
 */
import { randomUUID } from 'node:crypto'
import { access, constants, link, lstat, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { CommandError } from './failures.ts'

/** @throws Error with `path` and `code` if the directory does not permit new files; before long work */
export const assertWritable = (file: string): Promise<void> => access(dirname(file), constants.W_OK)

/** Of a file that its folder closes, or that every user may read: what the process permits. */
export const AS_USUAL = 0o666
const CLOSED = 0o600

/** Replaces the file at once, even if the power fails. @param mode of a new file */
export const writeWhole = async (file: string, text: string, mode = CLOSED): Promise<void> => {
  const temporary = await writeTemporary(file, text, mode)
  await rename(temporary, file).catch(ifRemoved(file))
  await syncDirectory(dirname(file))
}

/**
 * Creates the file at once. A file that is there stays as it is.
 * @returns whether it was created
 */
export const createWhole = async (file: string, text: string, mode = CLOSED): Promise<boolean> => {
  // Before anything is removed: a refusal changes nothing.
  if (await isThere(file)) return false
  const temporary = await writeTemporary(file, text, mode)
  try {
    await link(temporary, file)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return false
    // Another process has removed the temporary file, mostly one that has created the file meanwhile.
    if (code === 'ENOENT') {
      await access(file).catch(ifRemoved(file))
      return false
    }
    // This file system has no links.
    if (await isThere(file)) return false
    await rename(temporary, file).catch(ifRemoved(file))
    return true
  } finally {
    await rm(temporary, { force: true })
  }
}

/**
 * Creates a directory unless it exists. Not recursive: Node's own never ends where the system creates no directory. It
 * gets pay, and stays closed to other users of the machine until somebody opens it. A folder inside such a one is open
 * with it. One that is there stays as it is: a backup under another user may need it open.
 * @param say of the outermost directory: gets a warning if every user of the machine may read it
 * @returns whether it was created
 */
export const makeDirectory = async (directory: string, say?: (line: string) => void): Promise<boolean> => {
  try {
    await mkdir(directory, say ? { mode: 0o700 } : {})
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    const found = await stat(directory)
    if (!found.isDirectory()) throw error
    if (found.mode & OTHERS) say?.(`warning: ${directory} is open to every user of this machine: chmod o-rwx closes it`)
    return false
  }
}
const OTHERS = 0o007

/** The name of a new file is on disk only after this. */
export const syncDirectory = async (directory: string): Promise<void> => {
  await using handle = await open(directory, 'r')
  await handle.sync()
}

/** These files of a directory, and all its names, are on disk after this. */
export const syncFiles = async (directory: string, names: readonly string[]): Promise<void> => {
  for (const name of names) {
    await using handle = await open(join(directory, name), 'r')
    await handle.sync()
  }
  await syncDirectory(directory)
}

const writeTemporary = async (file: string, text: string, mode: number): Promise<string> => {
  const [folder, name] = [dirname(file), basename(file)]
  // A file of a killed process, or a link to another file: removed, never written through.
  for (const found of await readdir(folder)) {
    if (isTemporary(found, name)) await rm(join(folder, found), { force: true })
  }
  const temporary = join(folder, `${name}.${randomUUID()}.new`)
  const replaced = await stat(file).catch(ifMissing)
  await using handle = await open(temporary, 'wx', mode)
  if (replaced !== undefined) await handle.chmod(replaced.mode & 0o777)
  await handle.writeFile(text)
  await handle.sync()
  return temporary
}

/** HAZARD: only a name with an id is temporary. `close.key.new` may be the next secret key of a user. */
const isTemporary = (found: string, name: string): boolean =>
  found.startsWith(`${name}.`) && /^[0-9a-f-]{36}\.new$/.test(found.slice(name.length + 1))

/** Also a link that leads nowhere. */
const isThere = async (file: string): Promise<boolean> => (await lstat(file).catch(ifMissing)) !== undefined

const ifMissing = (error: { code?: unknown }): undefined => {
  if (error.code !== 'ENOENT') throw error
}

const ifRemoved =
  (file: string) =>
  (error: { code?: unknown }): void => {
    if (error.code !== 'ENOENT') throw error
    throw new CommandError(`another command writes ${file} at the same time: let it end, and run the same again`)
  }
