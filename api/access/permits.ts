/**
 * All that a request holds, and where each is given back. A request holds six things:
 * - the bytes that a read expects: when this read ends (`readOnce` in scope.ts). Those that arrived take their place;
 * - its permit to read: when its route has made the answer (`shareReads`);
 * - the buffers of its reads: when the answer is made (`limitDelivery`), unless the answer is a part of them;
 * - its turn for a large answer: after that (`limitDelivery`), before Koa sends the answer;
 * - its reservation: when the answer is delivered or its connection is gone (`onceDelivered`). A refused request, and
 *   an answer without a body, give it back at once (`limitDelivery`). If a strict audit log refuses an answer that is
 *   made, its reservation stays until the refusal is delivered;
 * - its permits in flight: when the answer is delivered or its connection is gone (`limitInFlight`).
 * While it waits for a change it has only its permits in flight: `RequestMemory.close` ends turn and reservation.
 *
 * Its permits. `Shares` has all semaphores of the API, but those for seal keys: they bound a client, an organization or
 * a kind of work.
 * In: an authenticated and counted request. Out: the same request, if its key and its organization have permits left,
 *   and then with a read permit of its organization.
 * Promises: a request holds its permits of `limitInFlight` until its answer is delivered or its connection is closed.
 *   Nothing returns them earlier or keeps them longer. So a client cannot request more than it reads. An organization
 *   reads with at most a fifth of READS_IN_FLIGHT_MAX, so that others can read. Requests for totals take at most half
 *   of them, because each can wait for a sum. A request queues for a short time.
 * Can go wrong: too many requests are in flight → `rate_limited` at once. The refused request counts, too. No permit to
 *   read in time → `unavailable`: other requests of the same organization hold all of its permits.
 *
 * Its memory (`spent.held`): the buffers of its reads, its turn, and its reservation, which is in one of these states:
 * - none: before `reserveReads`, while the request waits for a change, and for an answer without a key;
 * - reading: the bytes that its reads expect or have (scope.ts), and those of an answer that is a copy;
 * - in delivery (`Reservation.deliver`): the bytes of the answer;
 * - closed: it counts nothing any more.
 * In: `reserveReads` has a request with a permit to read. `limitDelivery` comes before authentication, and has the
 *   answer of all later steps. Out: the same answer, ready to be sent by Koa, with a reservation of the budget until
 *   the client has it or its connection is gone.
 * Promises: once the answer is made, the reservation equals the bytes that the answer holds, even if it is part of a
 *   larger buffer. All other buffers of the reads are freed, and the answer is freed once it is delivered. Before, the
 *   reservation does not count the copies with opened texts (open-records.ts). An answer without a key is one buffer
 *   that all deliveries share: only an encrypted copy of it counts. Delivery takes a bounded time. An encrypted
 *   connection also holds one piece of the answer.
 * Can go wrong: the budget is used up → `unavailable`. A client reads too slowly → its connection is closed.
 */
import { Readable } from 'node:stream'
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
import {
  type AnswerBudget,
  compact,
  createReadMemory,
  createTurn,
  free,
  heldBy,
  largeFrom,
} from '../../core/store/index.ts'
import type { Arrived, Authenticated, Context, Reserved, Routed, Step, Timed } from '../http/request.ts'
import { onceDelivered } from '../http/server.ts'
import {
  DELIVERY_RATE_MIN,
  DELIVERY_TIME_MIN,
  ENCRYPTED_AT_ONCE,
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

/** Step: holds and limits the delivery of an answer. @param onDeliveryTimeout called if it was not delivered in time */
export const limitDelivery = (budget: AnswerBudget, later: Schedule, onDeliveryTimeout: () => void): Step<Arrived> => {
  return async (ctx, next) => {
    const { spent } = ctx.state
    try {
      await next()
      const body: unknown = ctx.body
      for (const read of spent.held?.reads ?? []) if (!isPartOf(body, read)) free(read)
      if (Buffer.isBuffer(body)) deliver(ctx, compact(body))
      else spent.held?.reservation.close()
    } catch (error) {
      spent.held?.reservation.close()
      throw error
    } finally {
      // The turn ends last, when the bytes of the reads are given back.
      spent.held?.turn.end()
    }
  }

  function deliver(ctx: Context<Arrived>, body: Buffer): void {
    const { req, res } = ctx
    const { held } = ctx.state.spent
    if (ctx.method === 'HEAD' || res.closed || res.destroyed) {
      held?.reservation.close()
      return
    }
    const isEncrypted = 'encrypted' in req.socket && req.socket.encrypted === true
    // All deliveries without a key share one buffer. Only an encrypted copy takes memory.
    const reservation = held?.reservation ?? (isEncrypted ? budget.open(undefined) : undefined)
    reservation?.deliver(heldBy(body))
    const cancel = later(deliveryTime(body.length), () => {
      onDeliveryTimeout()
      req.socket.destroy()
    })
    onceDelivered(req, res, () => {
      cancel()
      // A response that broke off may still be in use.
      if (res.writableFinished) free(body)
      reservation?.close()
    })
    const isInPieces = isEncrypted && body.length > ENCRYPTED_AT_ONCE
    if (isInPieces) res.setMaxListeners(LISTENERS_MAX)
    ctx.body = isInPieces ? Readable.from(piecesOf(body)) : body
    ctx.length = body.length
  }
}

/** Node adds seven listeners to a response that comes from a stream. Above ten, it would write a warning each time. */
const LISTENERS_MAX = 20

/** Whether a body shares memory with a read: then the read must stay. */
const isPartOf = (body: unknown, read: Buffer): boolean => Buffer.isBuffer(body) && body.buffer === read.buffer

/** Returns the milliseconds for delivery, in whole seconds, because Node keeps a list of timers for each duration. */
export const deliveryTime = (bytes: number): number => DELIVERY_TIME_MIN + Math.floor(bytes / DELIVERY_RATE_MIN) * 1_000

/**
 * @throws Error if the body was freed meanwhile: this closes the connection. If the body only ended early, the next
 *   answer of the connection would fill it up.
 */
const piecesOf = function* (body: Buffer): Generator<Buffer> {
  const { length } = body
  for (let from = 0; from < length; from += ENCRYPTED_AT_ONCE) {
    if (body.length !== length) throw new Error('a body was freed before it was delivered')
    yield body.subarray(from, from + ENCRYPTED_AT_ONCE)
  }
}

type Needs = Arrived & Timed & Routed & Authenticated
type Opened = Pick<Reserved, 'scope' | 'reservation'>

/** Opens the memory of a request before it reads, and closes it. */
export type RequestMemory = {
  readonly open: (request: Needs) => Opened
  readonly close: (request: Arrived) => void
}

export const createRequestMemory = (budget: AnswerBudget, turns: Semaphores): RequestMemory => ({
  open: ({ key, signal, isCopied, spent }) => {
    const turn = createTurn(turns, key.org, largeFrom(isCopied), signal)
    const reservation = budget.open(key, turn.isMine)
    const reads: Buffer[] = []
    const onRead = (bytes: number): void => {
      spent.bytesRead += bytes
    }
    spent.held = { reservation, turn, reads }
    const memory = createReadMemory({ reservation, turn, org: key.org, reads, onRead })
    return { reservation, scope: { org: key.org, signal, memory } }
  },
  close: ({ spent }) => {
    spent.held?.reservation.close()
    spent.held?.turn.end()
    spent.held = undefined
  },
})

/** Step: opens the memory of an authenticated request, for its reads and its answer. */
export const reserveReads = ({ open }: RequestMemory): Step<Needs, Reserved> => {
  return (ctx, next) => next({ ...open(ctx.state), form: { isFixed: () => false, sealState: undefined } })
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
