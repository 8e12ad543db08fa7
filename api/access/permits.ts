/**
 * The permits of a request, and how long it holds them. `Shares` has all semaphores of the API, but those for seal
 * keys: they bound a client, an organization or a kind of work.
 * In: an authenticated and counted request. Out: the same request, if its key and its organization have permits left,
 *   and then with a read permit of its organization.
 * Promises: a request holds its permits of `limitInFlight` until its answer is delivered or its connection is closed.
 *   Nothing returns them earlier or keeps them longer. So a client cannot request more than it reads. An organization
 *   reads with at most a fifth of READS_IN_FLIGHT_MAX, so that others can read. Requests for totals take at most half
 *   of them, because each can wait for a sum. A request queues for a short time.
 * Can go wrong: too many requests are in flight → `rate_limited` at once. The refused request counts, too. No permit to
 *   read in time → `unavailable`: other requests of the same organization hold all of its permits.
 */

import { READS_OF_ORGANIZATION, type RunPermitted } from '../../core/reading/index.ts'
import {
  createSemaphore,
  createSemaphores,
  Refusal,
  type Schedule,
  type Semaphore,
  type SemaphoreLimits,
  type Semaphores,
  unavailable,
  within,
} from '../../core/runtime/index.ts'
import type { Authenticated, Routed, Step, Timed } from '../http/request.ts'
import { onceDelivered } from '../http/server.ts'
import {
  ENCRYPTED_WAITS,
  IN_FLIGHT_OF_KEY,
  IN_FLIGHT_OF_ORGANIZATION,
  KEY_LOOKUPS,
  KEY_LOOKUPS_EXHAUSTED,
  LARGE_ANSWERS,
  LARGE_ANSWERS_OF_ORGANIZATION,
  TOTALS_READS_OF_ORGANIZATION,
  WAIT_SEARCHES,
  WAIT_SEARCHES_OF_ORGANIZATION,
  WAITS,
  WAITS_OF_ORGANIZATION,
} from '../limits.ts'

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

export type Shares = {
  /** Requests in flight: from authentication until the answer is delivered or the connection is closed. */
  readonly inFlightOfKey: Semaphores
  readonly inFlightOfOrganization: Semaphores
  /** Requests that read: each sends one request to Elasticsearch at a time. */
  readonly readsOfOrganization: Semaphores
  /** Those of them that read totals: each can wait for a sum. */
  readonly totalsOfOrganization: Semaphores
  /** Requests that read and make a large answer: per organization, within the limit of the process. */
  readonly largeAnswers: Semaphores
  /** Requests that wait for a change: per organization, within the limit of the process. */
  readonly waits: Semaphores
  /** Searches of such requests: per organization, within the limit of the process. */
  readonly waitSearches: Semaphores
  readonly keyLookups: Semaphore
  /** For addresses that tried too many unknown keys. */
  readonly keyLookupsExhausted: Semaphore
}
export type ShareLimits = {
  readonly [Name in
    | keyof Shares
    | 'largeAnswersOfProcess'
    | 'waitsOfProcess'
    | 'waitSearchesOfProcess']: SemaphoreLimits
}

/** The limits of `limits.ts`. */
export const usualShares: ShareLimits = {
  inFlightOfKey: IN_FLIGHT_OF_KEY,
  inFlightOfOrganization: IN_FLIGHT_OF_ORGANIZATION,
  readsOfOrganization: READS_OF_ORGANIZATION,
  totalsOfOrganization: TOTALS_READS_OF_ORGANIZATION,
  largeAnswers: LARGE_ANSWERS_OF_ORGANIZATION,
  largeAnswersOfProcess: LARGE_ANSWERS,
  waits: WAITS_OF_ORGANIZATION,
  waitsOfProcess: WAITS,
  waitSearches: WAIT_SEARCHES_OF_ORGANIZATION,
  waitSearchesOfProcess: WAIT_SEARCHES,
  keyLookups: KEY_LOOKUPS,
  keyLookupsExhausted: KEY_LOOKUPS_EXHAUSTED,
}

/** The same for a process with encrypted connections, which are fewer. */
export const encryptedShares: ShareLimits = { ...usualShares, waitsOfProcess: ENCRYPTED_WAITS }

/** Creates all semaphores of a process. */
export const createShares = (limits: ShareLimits, later: Schedule): Shares => ({
  inFlightOfKey: createSemaphores(limits.inFlightOfKey, later),
  inFlightOfOrganization: createSemaphores(limits.inFlightOfOrganization, later),
  readsOfOrganization: createSemaphores(limits.readsOfOrganization, later),
  totalsOfOrganization: createSemaphores(limits.totalsOfOrganization, later),
  largeAnswers: within(
    createSemaphore(limits.largeAnswersOfProcess, later),
    createSemaphores(limits.largeAnswers, later),
  ),
  waits: within(createSemaphore(limits.waitsOfProcess, later), createSemaphores(limits.waits, later)),
  waitSearches: within(
    createSemaphore(limits.waitSearchesOfProcess, later),
    createSemaphores(limits.waitSearches, later),
  ),
  keyLookups: createSemaphore(limits.keyLookups, later),
  keyLookupsExhausted: createSemaphore(limits.keyLookupsExhausted, later),
})

/** Permits held and requests waiting, by use, for the metrics. */
export type Usage = Readonly<Record<keyof ReturnType<typeof usageOf> | 'waits_for_changes', InUse>>
type InUse = { readonly held: number; readonly waiting: number }

/** Returns the use of each semaphore now. */
export const usageOf = (shares: Shares) => {
  const inUse = ({ held, waiting }: Semaphore | Semaphores): InUse => ({ held: held(), waiting: waiting() })
  return {
    requests: inUse(shares.inFlightOfOrganization),
    reads: inUse(shares.readsOfOrganization),
    large_answers: inUse(shares.largeAnswers),
    key_look_ups: inUse(shares.keyLookups),
    limited_key_look_ups: inUse(shares.keyLookupsExhausted),
    wait_searches: inUse(shares.waitSearches),
  }
}
