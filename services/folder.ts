/**
 * Chooses the folder for the data of servers, which is deleted at the end. Uses memory if enough is free: on a disk
 * that is shared with other work, measurements and many tests vary. `TMPDIR` sets another folder.
 */
import { access, constants, readFile, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import type { Environment } from './service.ts'

const inMemory = '/dev/shm'
/** Free bytes that the folder in memory must have. */
const plenty = 8 * 1024 ** 3

/** Returns the folder for temporary data: TMPDIR, memory, or the usual one of the system. */
export const temporaryFolder = async ({ TMPDIR }: Environment): Promise<string> =>
  TMPDIR ?? ((await isSuitable(inMemory)) ? inMemory : tmpdir())

const isSuitable = async (folder: string): Promise<boolean> => {
  try {
    await access(folder, constants.W_OK)
    // Java servers unpack native libraries there and load them, which `noexec` forbids.
    const mounts = (await readFile('/proc/self/mounts', 'utf8')).split('\n').map(line => line.split(' '))
    const options = mounts.findLast(([, path]) => path === folder)?.[3]?.split(',')
    if (options === undefined || options.includes('noexec')) return false
    const { bavail, bsize } = await statfs(folder)
    return bavail * bsize >= plenty
  } catch {
    return false
  }
}
