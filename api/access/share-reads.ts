/**
 * In: a request that is about to read. Out: the same, once its organization has a permit to read for it.
 * Promises: an organization reads with a fifth of all permits at most, so that others find one; a request waits in line
 * for a moment.
 * Can go wrong: no permit in time → `unavailable`: other requests of the same organization take all of its share.
 */

import type { Semaphores } from '../capacity/semaphore.ts'
import { unavailable } from '../failures.ts'
import type { Step } from '../http/request.ts'

export const shareReads = (reads: Semaphores): Step => {
  return async (ctx, next) => {
    const { key, signal } = ctx.state
    if (!key) throw new Error('shareReads needs an authenticated request')
    const release = await reads.acquire(key.org, signal)
    if (!release) throw unavailable('reads_of_organization')
    try {
      await next()
    } finally {
      release()
    }
  }
}
