/**
 * Counts the requests of each key in a window of fixed length: in this process, or where there is a Redis in there, for
 * all processes.
 * Promises: nothing is refused and nobody waits long because Redis is away, slow or frozen: then this process counts
 * for itself.
 */
import { createClient } from '@redis/client'
import { RateLimiterMemory, RateLimiterRedis, type RateLimiterRes, RLWrapperTimeouts } from 'rate-limiter-flexible'
import {
  REDIS_ANSWER_TIME_MAX,
  REDIS_CONNECT_TIME_MAX,
  REDIS_PING_INTERVAL,
  REDIS_QUEUE_MAX,
  REDIS_RETRY_INTERVAL,
} from '../limits.ts'

export type Rate = { readonly requests: number; readonly windowSeconds: number }

/** All three: what is counted of a key now. Over the limit, `consume` rejects with it. */
export type RequestCounter = {
  readonly consume: (key: string) => Promise<RateLimiterRes>
  /** Gives a request back. */
  readonly reward: (key: string) => Promise<RateLimiterRes>
  /** Counts this many units, 1 by default, even beyond the limit. */
  readonly penalty: (key: string, units?: number) => Promise<RateLimiterRes>
}

/** Exact within this process. */
export const countAlone = ({ requests, windowSeconds }: Rate): RequestCounter =>
  new RateLimiterMemory({ points: requests, duration: windowSeconds })

export type SharedCounter = RequestCounter & { readonly stop: () => void }

type Told = {
  /** Whether Redis counts from now on; told when that changes. */
  readonly counts: (counts: boolean) => void
  /** A request was counted by this process for itself. */
  readonly countedAlone: () => void
}

/**
 * Exact over all processes that are given the same Redis and the same name. Returns at once: Redis may come later.
 * @param now milliseconds
 */
export const countTogether = (url: string, name: string, rate: Rate, now: () => number, told: Told): SharedCounter => {
  const client = createClient({
    url,
    // What cannot be sent now is counted here.
    disableOfflineQueue: true,
    commandsQueueMaxLength: REDIS_QUEUE_MAX,
    pingInterval: REDIS_PING_INTERVAL,
    socket: {
      connectTimeout: REDIS_CONNECT_TIME_MAX,
      socketTimeout: 2 * REDIS_PING_INTERVAL,
      reconnectStrategy: REDIS_RETRY_INTERVAL,
    },
  })
  let counting: boolean | undefined
  const tell = (counts: boolean): void => {
    if (counting !== counts) told.counts(counts)
    counting = counts
  }
  // The client's own words may hold the address: they are not passed on.
  client.on('error', () => tell(false))
  client.on('ready', () => tell(true))
  client.connect().catch(() => tell(false))

  let alone = 0
  let askAgainAt = Number.NEGATIVE_INFINITY
  const insurance = new Insurance(rate, () => {
    alone++
    // Frozen it keeps its connections: each request would wait for it.
    if (now() >= askAgainAt) askAgainAt = now() + REDIS_RETRY_INTERVAL
    tell(false)
    told.countedAlone()
  })
  const together = new RLWrapperTimeouts({
    limiter: new RateLimiterRedis({
      keyPrefix: name,
      points: rate.requests,
      duration: rate.windowSeconds,
      storeClient: client,
      useRedisPackage: true,
      rejectIfRedisNotReady: true,
    }),
    timeoutMs: REDIS_ANSWER_TIME_MAX,
    insuranceLimiter: insurance,
  })
  const counter = (): RequestCounter => (now() < askAgainAt ? insurance : together)
  return {
    consume: async key => {
      const before = alone
      try {
        return await counter().consume(key)
      } finally {
        if (alone === before) tell(true)
      }
    },
    reward: key => counter().reward(key),
    penalty: (key, units) => counter().penalty(key, units),
    stop: () => client.destroy(),
  }
}

/** Counts while Redis does not. */
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
