/**
 * In: an authenticated request. Out: the same, counted, if its key may read and has units left in the window.
 * Promises: a request counts one unit when it comes, and when its answer is made one more for each further
 *   RATE_UNIT_BYTES that was begun: who reads large answers pays for what they take. Every answer from here on says
 *   what is left; a 304 to a tag that the client has gives its request back.
 */
import { RateLimiterRes } from 'rate-limiter-flexible'
import { RATE_UNIT_BYTES } from '../../schemas/limits.ts'
import { Refusal } from '../failures.ts'
import type { Context, Step } from '../http/request.ts'
import type { Rate, RequestCounter } from './rate-counter.ts'

type Parts = {
  readonly rate: Rate
  /** Requests of a key that may be under way: said with the rate. */
  readonly underWayMax: number
  readonly counter: RequestCounter
  readonly now: () => number
  /** Told of every request that was over the limit. */
  readonly limited: () => void
}

export const limitRate = ({ rate, underWayMax, counter, now, limited }: Parts): Step => {
  const policy = [
    `"default";q=${rate.requests};w=${rate.windowSeconds};qu="requests";commission-unit-bytes=${RATE_UNIT_BYTES}`,
    `"concurrent";q=${underWayMax};qu="concurrent-requests"`,
  ].join(', ')

  return async (ctx, next) => {
    const { key } = ctx.state
    if (!key) throw new Error('limitRate needs an authenticated request')
    // The id of a key is its organization's own: two may use the same.
    const place = `${key.org}:${key.id}`
    const counted = await count(counter, place)
    const windowEnds = now() + counted.msBeforeNext
    ctx.set('RateLimit-Policy', policy)
    setLeft(ctx, counted.remainingPoints, counted.msBeforeNext)
    // 403 comes before 429, and counts as every request does.
    if (!key.mayRead) throw new Refusal('forbidden')
    if (counted.consumedPoints > rate.requests) {
      limited()
      ctx.set('Retry-After', String(secondsUntil(counted.msBeforeNext)))
      throw new Refusal('rate_limited')
    }
    ctx.state.uncount = () => {
      // A count of a window that has ended is not given back to the next window.
      const left = windowEnds - now()
      if (left <= 0) return
      void giveBack(counter, place)
      setLeft(ctx, counted.remainingPoints + 1, left)
    }
    await next()
    const more = unitsOf(ctx.response.length ?? 0) - 1
    // In a window that has ended since, it would count against the next one.
    if (more <= 0 || now() >= windowEnds) return
    charge(counter, place, more)
    setLeft(ctx, Math.max(0, counted.remainingPoints - more), windowEnds - now())
  }
}

/** Cost of an answer, by its number of bytes. */
export const unitsOf = (bytes: number): number => Math.max(1, Math.ceil(bytes / RATE_UNIT_BYTES))

/** Not waited for: the answer is made. Where it cannot be counted, it is not. */
const charge = (counter: RequestCounter, key: string, units: number): void => {
  counter.penalty(key, units).catch(() => undefined)
}

const count = async (counter: RequestCounter, key: string): Promise<RateLimiterRes> => {
  try {
    return await counter.consume(key)
  } catch (over) {
    if (over instanceof RateLimiterRes) return over
    throw over
  }
}

/** Never fails: nobody waits for it, and at worst a request counts that need not. */
const giveBack = async (counter: RequestCounter, key: string): Promise<void> => {
  try {
    const { consumedPoints } = await counter.reward(key)
    // The window ended in between: this one has nothing to give back.
    if (consumedPoints < 0) await counter.penalty(key)
  } catch {
    // It stays counted.
  }
}

const setLeft = (ctx: Context, left: number, msBeforeNext: number): void =>
  ctx.set('RateLimit', `"default";r=${left};t=${secondsUntil(msBeforeNext)}`)

/** Whole seconds after which the window has surely ended: at least 1. */
export const secondsUntil = (milliseconds: number): number => Math.max(1, Math.ceil(milliseconds / 1000))
