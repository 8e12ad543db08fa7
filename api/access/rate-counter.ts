/**
 * Counts the requests of each key in a window of fixed length: in this process, or in Redis for all processes.
 * Promises: if Redis is away, slow or frozen, this process counts instead. No request is refused because of Redis, or
 *   waits long for it.
 */
import { RateLimiterMemory, RateLimiterRedis, type RateLimiterRes, RLWrapperTimeouts } from 'rate-limiter-flexible'
import { REDIS_CONNECT_TIME_MAX } from '../../core/runtime/index.ts'
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

/** Exact within this process. */
export const createLocalCounter = ({ requests, windowSeconds }: Rate): RequestCounter =>
  new RateLimiterMemory({ points: requests, duration: windowSeconds })

type SharedCounter = RequestCounter & { readonly stop: () => void }

type CounterCallbacks = {
  /** Called with true when Redis begins to count, with false when Redis stops. */
  readonly onSharedChange: (shared: boolean) => void
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
  const reportShared = (shared: boolean): void => {
    if (reported !== shared) callbacks.onSharedChange(shared)
    reported = shared
  }
  // The client's messages may contain the address of Redis, so they are not passed on.
  client.on('error', () => reportShared(false))
  client.on('ready', () => reportShared(true))
  client.connect().catch(() => reportShared(false))

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
      storeClient: client,
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
