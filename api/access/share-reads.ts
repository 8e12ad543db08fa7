/**
 * In: a request that is about to read. Out: the same request with a read permit of its organization.
 * Promises: an organization reads with at most a fifth of READS_IN_FLIGHT_MAX, so that others can read. Requests for
 *   totals take at most half of them, because each can wait for a sum. A request queues for a short time.
 * Can go wrong: no permit in time → `unavailable`: other requests of the same organization hold all of its permits.
 */

import type { RunPermitted } from '../../core/reading/index.ts'
import { type Semaphores, unavailable } from '../../core/runtime/index.ts'
import type { Authenticated, Routed, Timed } from '../http/request.ts'
import type { Step } from '../http/steps.ts'

/** Step: holds a read permit until the following steps have ended. @throws Refusal `unavailable` without a permit */
export const shareReads = (
  totalsRoute: string,
  reads: Semaphores,
  readsOfTotals: Semaphores,
): Step<Timed & Routed & Authenticated> => {
  const permitted = runPermitted(reads)
  const permittedTotals = runPermitted(readsOfTotals)
  return ({ state: { key, signal, route } }, next) => {
    const request = { org: key.org, signal }
    const read = () => permitted(request, next)
    // A request for totals that queues holds no permit to read.
    return route === totalsRoute ? permittedTotals(request, read) : read()
  }
}

/** Returns the function that runs a read with a permit of its organization. */
export const runPermitted =
  (reads: Semaphores): RunPermitted =>
  async ({ org, signal }, read) => {
    const release = await reads.acquire(org, signal)
    if (!release) throw unavailable('reads_of_organization')
    try {
      return await read()
    } finally {
      release()
    }
  }
