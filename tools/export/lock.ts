/**
 * Lets one run of an export or of an archive at a time write into a directory.
 *
 * In: a directory. Out: a lock, or an error if another run writes there.
 * Promises: each run writes its own lock file before it looks for others: of two that start together at most one
 * continues. The lock of a killed run blocks nobody. On the same machine its process is looked up. On another machine
 * its file is watched: a live run updates the file's time every few seconds. Clocks of different machines are not
 * compared.
 * Can go wrong: the directory is not writable; a run that was suspended longer than others watch finds its lock
 * removed, and ends.
 */
import { randomUUID } from 'node:crypto'
import { readdir, readFile, readlink, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { CommandError } from '../failures.ts'
import { LOCK_HEARTBEAT_MS, LOCK_WATCHED_MS } from '../limits.ts'

export type LockSteps = {
  readonly say: (line: string) => void
  readonly sleep: (milliseconds: number) => Promise<void>
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly processes: Processes
  /** Ends the watch. */
  readonly signal?: AbortSignal
}

export type Processes = {
  readonly self: () => Promise<Owner>
  /** The start time of a process; undefined if there is no such process. */
  readonly startOf: (pid: number) => Promise<string | undefined>
}

export type Lock = {
  /** @throws CommandError if another run has taken over */
  readonly assertHeld: () => Promise<void>
  readonly release: () => Promise<void>
}

/** A field of lock files: the running kernel and its PID namespace; null if the system has no /proc. */
const PID_NAMESPACE = 'place'

/** Identifies a process. The content of a lock file, which other versions of this program read too. */
export type Owner = {
  readonly host: string
  readonly [PID_NAMESPACE]: string | null
  readonly pid: number
  readonly started: string
}

/** The work that a lock is for, as messages and names of lock files say it. */
type LockedWork = 'export' | 'archive'

export const isLockFile = (name: string): boolean => /^(?:export|archive)\.[0-9a-f-]{36}\.lock$/.test(name)

/** @throws CommandError while another run writes into the directory */
export const lockDirectory = async (
  directory: string,
  steps: LockSteps,
  work: LockedWork = 'export',
): Promise<Lock> => {
  const ours = `${work}.${randomUUID()}.lock`
  const file = join(directory, ours)
  const owner = await steps.processes.self()
  await writeFile(file, JSON.stringify(owner), { flag: 'wx' })
  try {
    for (const name of await readdir(directory)) {
      if (!isLockFile(name) || name === ours) continue
      const other = join(directory, name)
      const found = await readOwner(other)
      if (await isRunning(() => modifiedAt(other), found, owner, steps)) {
        const who = found === undefined ? '' : ` (process ${found.pid} on ${found.host})`
        throw new CommandError(
          `another ${work} writes into ${directory}${who}: let it end, or choose another directory`,
        )
      }
      await rm(other, { force: true })
    }
  } catch (error) {
    await rm(file, { force: true })
    throw error
  }
  const heartbeat = setInterval(() => {
    const time = new Date(steps.now())
    // `assertHeld` notices a removed lock before the next write.
    utimes(file, time, time).catch(() => undefined)
  }, LOCK_HEARTBEAT_MS)
  heartbeat.unref()
  return {
    assertHeld: async () => {
      if (await modifiedAt(file)) return
      throw new CommandError(
        `another ${work} has taken ${directory} over meanwhile: let it end, or choose another directory`,
      )
    },
    release: async () => {
      clearInterval(heartbeat)
      await rm(file, { force: true })
    },
  }
}

/** @param watched returns something that changes while the other one runs; undefined if it has ended */
export const isRunning = async (
  watched: () => Promise<string | number | undefined>,
  other: Owner | undefined,
  ours: Owner,
  { say, sleep, processes, signal }: LockSteps,
): Promise<boolean> => {
  const namespace = other?.[PID_NAMESPACE]
  if (other !== undefined && namespace != null && namespace === ours[PID_NAMESPACE]) {
    return (await processes.startOf(other.pid)) === other.started
  }
  const before = await watched()
  if (before === undefined) return false
  say(`${other?.host ?? 'somebody'} may be writing there: watching for up to ${LOCK_WATCHED_MS / 1_000} s`)
  for (let waited = 0; waited < LOCK_WATCHED_MS; waited += LOCK_HEARTBEAT_MS) {
    await sleep(LOCK_HEARTBEAT_MS)
    signal?.throwIfAborted()
    const now = await watched()
    if (now === undefined) return false
    if (now !== before) return true
  }
  return false
}

/** Modification time of the file; undefined if it does not exist. */
const modifiedAt = async (file: string): Promise<number | undefined> =>
  stat(file).then(
    ({ mtimeMs }) => mtimeMs,
    (error: { code?: unknown }) => {
      if (error.code === 'ENOENT') return undefined
      throw error
    },
  )

/** Undefined for an incomplete file: its writer is still writing, or was killed. */
const readOwner = async (file: string): Promise<Owner | undefined> => {
  const text = await readFile(file, 'utf8').catch(() => '')
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Start time of a process, in kernel ticks; undefined if there is no such process. */
const startOf = async (pid: number): Promise<string | undefined> => {
  const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  // The second field, the program's name in parentheses, may contain anything.
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
  const namespace = kernel === undefined ? null : `${kernel.trim()} ${processes}`
  return { host: hostname(), [PID_NAMESPACE]: namespace, pid, started: (await startOf(pid)) ?? '' }
}

export const runningProcesses: Processes = { self: describeSelf, startOf }
