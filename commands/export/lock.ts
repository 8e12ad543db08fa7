/**
 * Lets one export at a time write into a directory.
 *
 * In: a directory. Out: a lock, or the refusal to write there.
 * Promises: each export puts down a file of its own and then looks for others, so of two that come at the same time at
 *   most one goes on. The file of an export that was killed blocks nobody: on the same machine its process is looked
 *   for; elsewhere its file is watched, whose time a running export changes every few seconds. Clocks of different
 *   machines are not compared.
 * Can go wrong: the directory cannot be written to; an export that was frozen for longer than others watch finds its
 * file gone, and ends.
 */
import { randomUUID } from 'node:crypto'
import { readdir, readFile, readlink, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { CommandError } from '../failures.ts'
import { LOCK_BEAT_MS, LOCK_WATCHED_MS } from '../limits.ts'

export type LockSteps = {
  readonly say: (line: string) => void
  readonly sleep: (milliseconds: number) => Promise<void>
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly processes: Processes
}

/** What is known of the processes of this machine. */
export type Processes = {
  readonly self: () => Promise<Owner>
  /** When a process began; undefined where none runs by that number. */
  readonly startOf: (pid: number) => Promise<string | undefined>
}

export type Lock = {
  /** @throws CommandError where another export has taken over */
  readonly assertHeld: () => Promise<void>
  readonly release: () => Promise<void>
}

/** Which process: `place` is the running kernel and its table of processes, null where the system does not tell. */
type Owner = { readonly host: string; readonly place: string | null; readonly pid: number; readonly started: string }

const isLock = (name: string): boolean => /^export\.[0-9a-f-]{36}\.lock$/.test(name)

/** @throws CommandError while another export writes into the directory */
export const lockDirectory = async (directory: string, steps: LockSteps): Promise<Lock> => {
  const ours = `export.${randomUUID()}.lock`
  const file = join(directory, ours)
  const owner = await steps.processes.self()
  await writeFile(file, JSON.stringify(owner), { flag: 'wx' })
  try {
    for (const name of await readdir(directory)) {
      if (!isLock(name) || name === ours) continue
      const other = join(directory, name)
      const found = await readOwner(other)
      if (await isRunning(other, found, owner, steps)) {
        const who = found === undefined ? '' : ` (process ${found.pid} on ${found.host})`
        throw new CommandError(`another export writes into ${directory}${who}: let it end, or choose another directory`)
      }
      await rm(other, { force: true })
    }
  } catch (error) {
    await rm(file, { force: true })
    throw error
  }
  const beat = setInterval(() => {
    const time = new Date(steps.now())
    // A lock that is gone is noticed before the next write.
    utimes(file, time, time).catch(() => undefined)
  }, LOCK_BEAT_MS)
  beat.unref()
  return {
    assertHeld: async () => {
      if (await timeOf(file)) return
      throw new CommandError(
        `another export has taken ${directory} over meanwhile: let it end, or choose another directory`,
      )
    },
    release: async () => {
      clearInterval(beat)
      await rm(file, { force: true })
    },
  }
}

const isRunning = async (
  file: string,
  other: Owner | undefined,
  ours: Owner,
  { say, sleep, processes }: LockSteps,
): Promise<boolean> => {
  if (other?.place != null && other.place === ours.place) return (await processes.startOf(other.pid)) === other.started
  const before = await timeOf(file)
  if (before === undefined) return false
  say(
    `${other?.host ?? 'somebody'} may be exporting into this directory: watching for up to ${LOCK_WATCHED_MS / 1_000} s`,
  )
  for (let waited = 0; waited < LOCK_WATCHED_MS; waited += LOCK_BEAT_MS) {
    await sleep(LOCK_BEAT_MS)
    const now = await timeOf(file)
    if (now === undefined) return false
    if (now !== before) return true
  }
  return false
}

/** When the file was last changed; undefined where there is none. */
const timeOf = async (file: string): Promise<number | undefined> =>
  stat(file).then(
    ({ mtimeMs }) => mtimeMs,
    (error: { code?: unknown }) => {
      if (error.code === 'ENOENT') return undefined
      throw error
    },
  )

/** Undefined where it is not whole: it is being written, or its writer was killed. */
const readOwner = async (file: string): Promise<Owner | undefined> => {
  const text = await readFile(file, 'utf8').catch(() => '')
  try {
    return JSON.parse(text) as Owner
  } catch {
    return undefined
  }
}

/** When a process began, in ticks of the kernel; undefined where none runs by that number. */
const startOf = async (pid: number): Promise<string | undefined> => {
  const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  // The name of the program is in parentheses, and may hold anything.
  const [state, ...fields] = status?.slice(status.lastIndexOf(')') + 2).split(' ') ?? []
  return state === undefined || state === 'Z' || state === 'X' ? undefined : fields[18]
}

const describeSelf = async (): Promise<Owner> => {
  const [kernel, processes, status] = await Promise.all([
    readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
    readlink('/proc/self/ns/pid'),
    readFile('/proc/self/stat', 'utf8'),
  ]).catch(() => [])
  const pid = Number(status?.split(' ')[0] ?? 0)
  const place = kernel === undefined ? null : `${kernel.trim()} ${processes}`
  return { host: hostname(), place, pid, started: (await startOf(pid)) ?? '' }
}

export const runningProcesses: Processes = { self: describeSelf, startOf }
