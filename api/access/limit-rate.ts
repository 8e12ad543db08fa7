/**
 * In: an authenticated request. Out: the same request, counted, if its key may read the route (403) and has units left
 *   (429).
 * Promises: a request needs the permission of its route. For the totals of one rep or one deal it needs those of the
 *   records that are added, too, and for a checkpoint that of totals. For an unknown path, any permission is enough. A
 *   key without permissions gets 403 for every path. A request counts one unit when it starts. Its answer adds one unit
 *   for each further RATE_UNIT_BYTES begun, so that large answers cost more. A client can foresee bytes, but not
 *   time. The end of a window forgives an overdraft: the last unit may pay for a large page. Totals of a deal and
 *   checkpoints cost as much as what they read. If a read is refused because it is large, the bytes that arrived count
 *   instead. If the client leaves before its answer is made, those that were reserved for its reads, or added up,
 *   count. Every answer from here on shows the units left. A 304 to an entity tag that the client has refunds the
 *   unit. If a sum was made for it, the payouts of the sum count.
 *
 * A counter counts the units of each key in a window of fixed length: in this process, or in Redis for all processes.
 *   If Redis is away, slow or frozen, or refuses, this process counts instead. No request is refused because of Redis,
 *   or waits long for it. After a refusal it connects anew: the name of a master that became a replica may be that of
 *   the new master by now.
 */
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes, RLWrapperTimeouts } from 'rate-limiter-flexible'
import { hasParameter, type KeyHolder } from '../../core/reading/index.ts'
import { isTimeUp, NOT_MODIFIED, REDIS_CONNECT_TIME_MAX, Refusal, redisRefusal } from '../../core/runtime/index.ts'
import { RATE_UNIT_BYTES } from '../../schemas/limits.ts'
import {
  permissionOfPath,
  permissionsOfCheckpoints,
  permissionsOfDealTotals,
  permissionsOfRepTotals,
} from '../../schemas/lists.ts'
import {
  type Arrived,
  type Authenticated,
  BASE_PATH,
  type Context,
  type Counted,
  type Routed,
  type Spent,
  type Step,
  type Timed,
} from '../http/request.ts'
import { REDIS_ANSWER_TIME_MAX, REDIS_PING_INTERVAL, REDIS_QUEUE_MAX, REDIS_RETRY_INTERVAL } from '../limits.ts'

export type Rate = { readonly requests: number; readonly windowSeconds: number }

/**
 * The names are those of rate-limiter-flexible. Each method resolves to the current count of the key. Over the limit,
 * `consume` rejects with the count.
 */
export type RequestCounter = {
  readonly consume: (key: string) => Promise<RateLimiterRes>
  /** Refunds one unit. */
  readonly reward: (key: string) => Promise<RateLimiterRes>
  /** Charges units, 1 by default, even over the limit. */
  readonly penalty: (key: string, units?: number) => Promise<RateLimiterRes>
}

type Parts = {
  readonly rate: Rate
  /** Requests of a key that may be in flight at once, for the RateLimit-Policy header. */
  readonly inFlightMax: number
  readonly counter: RequestCounter
  readonly elapsed: () => number
  /** Called for every request over the limit. */
  readonly onLimited: () => void
}

type Needs = Arrived & Timed & Routed & Authenticated

/** Step: counts the request and its answer. @throws Refusal `forbidden` or `rate_limited` */
export const limitRate = ({ rate, inFlightMax, counter, elapsed, onLimited }: Parts): Step<Needs, Counted> => {
  const policy = [
    `"default";q=${rate.requests};w=${rate.windowSeconds};qu="requests";commission-unit-bytes=${RATE_UNIT_BYTES}`,
    `"concurrent";q=${inFlightMax};qu="concurrent-requests"`,
  ].join(', ')
  /** RateLimiterMemory counts by the time of day: a clock that steps back would make the window longer. */
  const msBeforeNextOf = (counted: RateLimiterRes): number => Math.min(counted.msBeforeNext, rate.windowSeconds * 1_000)

  return async (ctx, next) => {
    const { key, route, query, spent } = ctx.state
    // A key id is unique only within its organization.
    const counterKey = `${key.org}:${key.id}`
    const counted = await count(counter, counterKey)
    const msBeforeNext = msBeforeNextOf(counted)
    const windowEnds = elapsed() + msBeforeNext
    ctx.set('RateLimit-Policy', policy)
    setLeft(ctx, counted.remainingPoints, msBeforeNext)
    // 403 takes precedence over 429. A forbidden request counts, too.
    requirePermission(key, route, query)
    if (counted.consumedPoints > rate.requests) {
      onLimited()
      ctx.set('Retry-After', String(secondsUntil(msBeforeNext)))
      throw new Refusal('rate_limited')
    }
    const refundUnit = (): void => {
      // A unit of a window that has ended is not added to the next window.
      const left = windowEnds - elapsed()
      if (left <= 0) return
      void refund(counter, counterKey)
      setLeft(ctx, counted.remainingPoints + 1, left)
    }
    const addUnits = (more: number): void => {
      // If the window has ended, the units would count against the next one.
      if (more <= 0 || elapsed() >= windowEnds) return
      charge(counter, counterKey, more)
      setLeft(ctx, Math.max(0, counted.remainingPoints - more), windowEnds - elapsed())
    }
    const bytesWhenGone = watchLeaving(ctx)
    try {
      await next({ refundUnit })
    } catch (error) {
      const isTooLarge = error instanceof Refusal && error.isTooLarge
      addUnits(unitsToAdd({ is: 'refused', isTooLarge, bytesWhenGone: bytesWhenGone() }, spent))
      throw error
    }
    const more = unitsToAdd({ is: 'answered', status: ctx.status, bytes: ctx.response.length ?? 0 }, spent)
    if (spent.waited > 0) {
      // The window may have ended while the request waited: the units and the header are those of the present one.
      const since = await counter.penalty(counterKey, more).catch(() => undefined)
      if (since) setLeft(ctx, Math.max(0, rate.requests - since.consumedPoints), msBeforeNextOf(since))
      return
    }
    addUnits(more)
  }
}

/** How a request ended. `bytesWhenGone`: held for it when its client left; 0 if the client has not left. */
type Ended =
  | { readonly is: 'answered'; readonly status: number; readonly bytes: number }
  | { readonly is: 'refused'; readonly isTooLarge: boolean; readonly bytesWhenGone: number }

/**
 * Returns the units of a request beside the one that it cost when it started. The largest number of bytes counts:
 * - answered: those of its body, and those that were added up for it;
 * - answered with 304: those added up, if this request was the first one that needed the sum. Else none;
 * - refused: those added up, if they are kept for the next request;
 * - refused for the bytes that it asked for: those that arrived, and those added up;
 * - refused after its client left: those that were reserved for its reads then, and those added up.
 */
export const unitsToAdd = (ended: Ended, spent: Pick<Spent, 'bytesRead' | 'added'>): number => {
  if (ended.is === 'answered') {
    const added = ended.status === NOT_MODIFIED && !spent.added.isFirst ? 0 : spent.added.bytes
    return unitsOf(Math.max(ended.bytes, added)) - 1
  }
  const arrived = ended.isTooLarge ? Math.max(spent.bytesRead, spent.added.bytes) : 0
  const kept = spent.added.isKept ? spent.added.bytes : 0
  return unitsOf(Math.max(ended.bytesWhenGone, arrived, kept)) - 1
}

/** Returns the units that an answer of this number of bytes costs, at least 1. */
export const unitsOf = (bytes: number): number => Math.max(1, Math.ceil(bytes / RATE_UNIT_BYTES))

/**
 * Returns a function: the bytes that were reserved for the request, or added up for it, when its client left; 0 if it
 * has not left.
 */
const watchLeaving = ({ state: { signal, spent } }: Context<Needs>): (() => number) => {
  let bytes: number | undefined
  // The reads give their bytes back later: only after all listeners of this signal.
  const note = (): void => {
    if (!isTimeUp(signal)) bytes = spent.held?.reservation.held() ?? 0
  }
  signal.addEventListener('abort', note, { once: true })
  return () => (bytes === undefined ? 0 : Math.max(bytes, spent.added.bytes))
}

/** Does not wait, because the answer is ready. If counting fails, the units are not counted. */
const charge = (counter: RequestCounter, key: string, units: number): void => {
  counter.penalty(key, units).catch(() => undefined)
}

/** Adds one. `consume` rejects with the count if it is above the limit. */
const count = async (counter: RequestCounter, key: string): Promise<RateLimiterRes> => {
  try {
    return await counter.consume(key)
  } catch (over) {
    if (over instanceof RateLimiterRes) return over
    throw over
  }
}

/** Never rejects, because nobody waits for it. At worst the request stays counted. */
const refund = async (counter: RequestCounter, key: string): Promise<void> => {
  try {
    const { consumedPoints } = await counter.reward(key)
    // The window has ended meanwhile: in the new window, the unit was never counted.
    if (consumedPoints < 0) await counter.penalty(key)
  } catch {
    // The request stays counted.
  }
}

const setLeft = (ctx: Pick<Context<Needs>, 'set'>, left: number, msBeforeNext: number): void =>
  ctx.set('RateLimit', `"default";r=${left};t=${secondsUntil(msBeforeNext)}`)

/** Returns whole seconds until the window has surely ended, at least 1. */
const secondsUntil = (milliseconds: number): number => Math.max(1, Math.ceil(milliseconds / 1000))

/** @param route the pattern of the route; undefined for an unknown path. @throws Refusal `forbidden` */
const requirePermission = ({ permissions }: KeyHolder, route: string | undefined, query: string): void => {
  if (permissions.size === 0) throw new Refusal('forbidden', { message: 'This API key has no permission.' })
  if (route === undefined || permissions.has('read')) return
  const [path = ''] = route.slice(BASE_PATH.length + 1).split('/', 1)
  const totalsOf = (name: string): boolean => path === 'totals' && hasParameter(query, name)
  // A route that no permission names would be a defect: then only a key with `read` reads it.
  const needed = [
    permissionOfPath.get(path) ?? 'read',
    ...(totalsOf('rep_id') ? permissionsOfRepTotals : []),
    ...(totalsOf('deal_id') ? permissionsOfDealTotals : []),
    ...(path === 'checkpoint' ? permissionsOfCheckpoints : []),
  ]
  const missing = needed.find(permission => !permissions.has(permission))
  if (missing !== undefined)
    throw new Refusal('forbidden', { message: `This API key lacks the permission ${missing}.` })
}

/** Exact within this process. */
export const createLocalCounter = ({ requests, windowSeconds }: Rate): RequestCounter =>
  new RateLimiterMemory({ points: requests, duration: windowSeconds })

type SharedCounter = RequestCounter & { readonly stop: () => void }

type CounterCallbacks = {
  /** Called with true when Redis begins to count, with false when Redis stops. `refusal`: the word of Redis, if any. */
  readonly onSharedChange: (shared: boolean, refusal?: string) => void
  /** Called for each request that this process counts itself. */
  readonly onLocalCount: () => void
}

/**
 * Exact over all processes with the same Redis and name. Waits for no answer of Redis, which may be away.
 * @param elapsed milliseconds of a monotonic clock
 */
export const createRedisCounter = async (
  url: string,
  name: string,
  rate: Rate,
  elapsed: () => number,
  callbacks: CounterCallbacks,
): Promise<SharedCounter> => {
  // Imported only here: without REDIS_URL it is a fifth of the start of an API process.
  const { createClient } = await import('@redis/client')
  const client = createClient({
    url,
    // A command that cannot be sent now is not queued: this process counts instead.
    disableOfflineQueue: true,
    commandsQueueMaxLength: REDIS_QUEUE_MAX,
    pingInterval: REDIS_PING_INTERVAL,
    socket: {
      connectTimeout: REDIS_CONNECT_TIME_MAX,
      socketTimeout: 2 * REDIS_PING_INTERVAL,
      reconnectStrategy: REDIS_RETRY_INTERVAL,
    },
  })
  let reported: boolean | undefined
  /** The word of Redis for a refusal, until it counts again. */
  let refusal: string | undefined
  const reportShared = (shared: boolean): void => {
    if (reported !== shared) callbacks.onSharedChange(shared, refusal)
    reported = shared
  }
  // The client's messages may contain the address of Redis, so they are not passed on.
  const fail = (error: unknown): void => {
    refusal = redisRefusal(error) ?? refusal
    reportShared(false)
  }
  client.on('error', fail)
  // After a refusal, only a request that Redis counts says that it counts again.
  client.on('ready', () => refusal === undefined && reportShared(true))
  const connect = (): void => void client.connect().catch(fail)
  connect()
  /** Counts with a script. */
  const runScript = async (...given: Parameters<typeof client.eval>) => {
    try {
      const counted = await client.eval(...given)
      refusal = undefined
      return counted
    } catch (error) {
      // Its connection stays open, and every later request would get the same answer. Of several, the first connects.
      if (redisRefusal(error) !== undefined && client.isReady) {
        fail(error)
        client.destroy()
        connect()
      }
      throw error
    }
  }

  let localCounts = 0
  let askAgainAt = Number.NEGATIVE_INFINITY
  const insurance = new Insurance(rate, () => {
    localCounts++
    // A frozen Redis keeps its connections open: without this pause, each request would wait for its timeout.
    if (elapsed() >= askAgainAt) askAgainAt = elapsed() + REDIS_RETRY_INTERVAL
    reportShared(false)
    callbacks.onLocalCount()
  })
  const redisLimiter = new RLWrapperTimeouts({
    limiter: new RateLimiterRedis({
      keyPrefix: name,
      points: rate.requests,
      duration: rate.windowSeconds,
      storeClient: {
        eval: runScript,
        get isReady() {
          return client.isReady
        },
      },
      useRedisPackage: true,
      rejectIfRedisNotReady: true,
    }),
    timeoutMs: REDIS_ANSWER_TIME_MAX,
    insuranceLimiter: insurance,
  })
  const counter = (): RequestCounter => (elapsed() < askAgainAt ? insurance : redisLimiter)
  return {
    consume: async key => {
      const before = localCounts
      try {
        return await counter().consume(key)
      } finally {
        if (localCounts === before) reportShared(true)
      }
    },
    reward: key => counter().reward(key),
    penalty: (key, units) => counter().penalty(key, units),
    stop: () => client.destroy(),
  }
}

/** The fallback: counts in this process while Redis does not. */
class Insurance extends RateLimiterMemory {
  readonly #used: () => void
  constructor({ requests, windowSeconds }: Rate, used: () => void) {
    super({ points: requests, duration: windowSeconds })
    this.#used = used
  }
  override consume(...given: Parameters<RateLimiterMemory['consume']>): Promise<RateLimiterRes> {
    this.#used()
    return super.consume(...given)
  }
}
