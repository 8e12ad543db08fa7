/**
 * In: a request that is about to read. Out: the same request with a read permit of its organization.
 * Promises: an organization holds at most a fifth of all permits, so that others get one. A request queues for a short
 *   time.
 * Can go wrong: no permit in time → `unavailable`: other requests of the same organization hold all of its permits.
 */

import type { Semaphores } from '../capacity/semaphore.ts'
import { unavailable } from '../failures.ts'
import { holderOf, type RequestStep } from '../http/request.ts'
import type { FindChange } from '../read/watch-changes.ts'

/** Step: holds a read permit until the following steps have ended. @throws Refusal `unavailable` without a permit */
export const shareReads = (reads: Semaphores): RequestStep => {
  return (ctx, next) => withPermit(reads, holderOf(ctx.state).org, ctx.state.signal, next)
}

/** Returns the same read, which holds a permit only while it reads. */
export const withReadPermit =
  (reads: Semaphores, find: FindChange): FindChange =>
  (org, asked, signal) =>
    withPermit(reads, org, signal, () => find(org, asked, signal))

const withPermit = async <Result>(
  reads: Semaphores,
  org: string,
  signal: AbortSignal,
  work: () => Promise<Result>,
): Promise<Result> => {
  const release = await reads.acquire(org, signal)
  if (!release) throw unavailable('reads_of_organization')
  try {
    return await work()
  } finally {
    release()
  }
}
