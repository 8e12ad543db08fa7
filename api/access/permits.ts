/**
 * The permits of a request, and how long it holds them.
 * In: an authenticated and counted request. Out: the same request, if its key and its organization have permits left,
 *   and then with a read permit of its organization.
 * Promises: a request holds its permits of `limitInFlight` until its answer is delivered or its connection is closed.
 *   Nothing returns them earlier or keeps them longer. So a client cannot request more than it reads. An organization
 *   reads with at most a fifth of READS_IN_FLIGHT_MAX, so that others can read. Requests for totals take at most half
 *   of them, because each can wait for a sum. A request queues for a short time.
 * Can go wrong: too many requests are in flight → `rate_limited` at once. The refused request counts, too. No permit to
 *   read in time → `unavailable`: other requests of the same organization hold all of its permits.
 */

import type { RunPermitted, Shares } from '../../core/reading/index.ts'
import { Refusal, type Semaphores, unavailable } from '../../core/runtime/index.ts'
import { onceDelivered } from '../http/one-at-a-time.ts'
import type { Authenticated, Routed, Step, Timed } from '../http/request.ts'

/** @param onLimited called for every request over the limit */
export const limitInFlight = (
  { inFlightOfKey, inFlightOfOrganization }: Pick<Shares, 'inFlightOfKey' | 'inFlightOfOrganization'>,
  onLimited: () => void,
): Step<Authenticated> => {
  return async (ctx, next) => {
    const { key } = ctx.state
    const ofKey = inFlightOfKey.tryAcquire(`${key.org}:${key.id}`)
    const ofOrganization = ofKey && inFlightOfOrganization.tryAcquire(key.org)
    if (!ofOrganization) {
      ofKey?.()
      onLimited()
      throw new Refusal('rate_limited', { reason: ofKey ? 'under_way_of_organization' : 'under_way_of_key' })
    }
    onceDelivered(ctx.req, ctx.res, () => {
      ofKey()
      ofOrganization()
    })
    await next()
  }
}

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
