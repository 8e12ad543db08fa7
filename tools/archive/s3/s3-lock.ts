/**
 * Lets one run at a time write into an archive in a bucket.
 *
 * In: the objects of the archive. Out: a lock, or an error if another run writes.
 * Promises: one object says who writes. Each change of it has a condition, so of two runs that start together one
 *   continues. A killed run blocks nobody: on the same machine its process is looked up, on another one its object is
 *   watched, which a run writes again every S3_LOCK_HEARTBEAT_MS. A store that ignores conditions is refused. The
 *   object is never deleted: a run needs no right to delete.
 * Can go wrong: a run that was suspended longer than others watch finds another owner, and ends.
 */
import { randomUUID } from 'node:crypto'
import { isRunning, type Lock, type LockSteps, type Owner } from '../../export/lock.ts'
import { CommandError } from '../../failures.ts'
import { S3_LOCK_HEARTBEAT_MS } from '../../limits.ts'
import type { S3Object, S3Objects } from './objects.ts'
import { noConditions } from './refusals.ts'

const LOCK_PATH = 'archive.lock'
/** An entity tag that no object has. */
const NO_TAG = `"${'0'.repeat(32)}"`

type Content = Owner & { readonly run: string; readonly beat: number; readonly released: boolean }

/** @throws CommandError while another run writes into the archive */
export const lockArchive = async (name: string, { get, put }: S3Objects, steps: LockSteps): Promise<Lock> => {
  const owner = await steps.processes.self()
  const run = randomUUID()
  let beat = 0
  let tag: string | undefined
  const encode = (released = false): Buffer => {
    const content: Content = { ...owner, run, beat: beat++, released }
    return Buffer.from(`${JSON.stringify(content)}\n`)
  }
  /** False if another run was faster. */
  const write = async (bytes: Buffer, over: string | undefined, retryOnce = false): Promise<boolean> => {
    tag = await put(LOCK_PATH, bytes, over, retryOnce)
    if (tag !== undefined) return true
    const found = await get(LOCK_PATH)
    if (contentIn(found)?.run !== run) return false
    // The answer to an earlier attempt was lost.
    tag = found?.tag
    return true
  }
  const refuse = (other: Content | undefined): never => {
    const who = other === undefined ? '' : ` (process ${other.pid} on ${other.host})`
    throw new CommandError(`another archive writes into ${name}${who}: let it end, or choose another address`)
  }

  const found = await get(LOCK_PATH)
  const other = contentIn(found)
  if (found !== undefined && !other?.released) {
    const watched = async () => {
      const seen = await get(LOCK_PATH)
      return contentIn(seen)?.released ? undefined : seen?.tag
    }
    if (await isRunning(watched, other, owner, steps)) refuse(other)
  }
  // A run that has ended while it was watched has written the object again.
  const present = await get(LOCK_PATH)
  if (present?.tag !== found?.tag && !contentIn(present)?.released) refuse(contentIn(present))
  if (!(await write(encode(), present?.tag))) refuse(contentIn(await get(LOCK_PATH)))
  for (const over of [undefined, NO_TAG]) {
    if ((await put(LOCK_PATH, encode(), over)) !== undefined) throw new CommandError(`${name}: ${noConditions}`)
  }

  let beating: Promise<unknown> = Promise.resolve()
  const heartbeat = setInterval(() => {
    // `assertHeld` notices another owner before the next write.
    beating = beating.then(() => write(encode(), tag, true)).catch(() => undefined)
  }, S3_LOCK_HEARTBEAT_MS)
  heartbeat.unref()
  return {
    assertHeld: async () => {
      if (contentIn(await get(LOCK_PATH))?.run === run) return
      throw new CommandError(`another archive has taken ${name} over meanwhile: let it end, or choose another address`)
    },
    release: async () => {
      clearInterval(heartbeat)
      await beating
      // Without an answer the next run waits until it sees that nobody writes.
      await put(LOCK_PATH, encode(true), tag, true).catch(() => undefined)
    },
  }
}

/** Undefined without an object, and for one that nobody understands. */
const contentIn = (found: S3Object | undefined): Content | undefined => {
  try {
    return found && JSON.parse(found.bytes.toString('utf8'))
  } catch {
    return undefined
  }
}
