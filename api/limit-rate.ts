/**
 * In: an authenticated request. Out: the same, counted, if its key may read and has requests left in the window.
 * Promises: every answer from here on says what is left; a 304 gives its request back.
 */
import { RateLimiterRes } from 'rate-limiter-flexible'
import type { Rate, RequestCounter } from './count-requests.ts'
import { Refusal } from './failures.ts'
import type { Context, Step } from './request.ts'

/** @param limited told of every request that was over the limit */
export const limitRate = (rate: Rate, counter: RequestCounter, now: () => number, limited: () => void): Step => {
  const policy = `"default";q=${rate.requests};w=${rate.windowSeconds}`

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
      // What was counted in a window that has ended is not given back in the next one.
      const left = windowEnds - now()
      if (left <= 0) return
      void giveBack(counter, place)
      setLeft(ctx, counted.remainingPoints + 1, left)
    }
    await next()
  }
}

const count = async (counter: RequestCounter, key: string): Promise<RateLimiterRes> => {
  try {
    return await counter.consume(key)
  } catch (over) {
    if (over instanceof RateLimiterRes) return over
    throw over
  }
}

const giveBack = async (counter: RequestCounter, key: string): Promise<void> => {
  const { consumedPoints } = await counter.reward(key)
  // The window ended in between: this one has nothing to give back.
  if (consumedPoints < 0) await counter.penalty(key)
}

const setLeft = (ctx: Context, left: number, msBeforeNext: number): void =>
  ctx.set('RateLimit', `"default";r=${left};t=${secondsUntil(msBeforeNext)}`)

/** Whole seconds after which the window has surely ended: at least 1. */
export const secondsUntil = (milliseconds: number): number => Math.max(1, Math.ceil(milliseconds / 1000))
