/**
 * Where servers keep what lives as long as they do. In memory where there is plenty of it: what is written is thrown
 * away in the end, and a disk that other work shares makes every figure and many a test waver. `TMPDIR` chooses another
 * place.
 */
import { access, constants, readFile, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import type { Environment } from './service.ts'

const inMemory = '/dev/shm'
/** Free bytes below which it is left alone. */
const plenty = 8 * 1024 ** 3

export const temporaryFolder = async ({ TMPDIR }: Environment): Promise<string> =>
  TMPDIR ?? ((await isSuitable(inMemory)) ? inMemory : tmpdir())

const isSuitable = async (folder: string): Promise<boolean> => {
  try {
    await access(folder, constants.W_OK)
    // Java servers unpack libraries there, and load them.
    const mounts = (await readFile('/proc/self/mounts', 'utf8')).split('\n').map(line => line.split(' '))
    const options = mounts.findLast(([, path]) => path === folder)?.[3]?.split(',')
    if (options === undefined || options.includes('noexec')) return false
    const { bavail, bsize } = await statfs(folder)
    return bavail * bsize >= plenty
  } catch {
    return false
  }
}
