/**
 * In: a request under the base path. Out: the same with whose key it carries.
 * Promises: a header that is missing, repeated or malformed and a key that is unknown or revoked answer alike; only a well-formed key is hashed.
 *   Who comes without a valid key too often is answered 429 in place of 401, and nothing is looked up any more but keys that were valid here:
 *   behind the address of one who tries keys there may be others.
 * Can go wrong: keys cannot be looked up → `unavailable`, never 401.
 */
import { API_KEY_LENGTH_MAX, API_KEY_LENGTH_MIN } from '../schemas/limits.ts'
import { Refusal } from './failures.ts'
import type { Keys } from './keys.ts'
import type { Failures } from './limit-failures.ts'
import { secondsUntil } from './limit-rate.ts'
import { countHeader, type Step } from './request.ts'

const grammar = new RegExp(`^Bearer ([A-Za-z0-9_-]{${API_KEY_LENGTH_MIN},${API_KEY_LENGTH_MAX}})$`, 'i')

/** @param limited told of every request of an address that came too often */
export const authenticate = ({ lookUp, wasValid }: Keys, failures: Failures, limited: () => void): Step => {
  return async (ctx, next) => {
    ctx.set('Cache-Control', 'private, no-cache')
    ctx.set('Vary', 'Authorization')
    const key = keyOf(ctx.req.rawHeaders, ctx.req.headers.authorization)
    const { remoteAddress } = ctx.req.socket
    const wait = failures.exhausted(remoteAddress)
    const isLookedUp = key !== undefined && (wait === undefined || wasValid(key))
    const holder = isLookedUp ? await lookUp(key, ctx.state.signal) : 'unknown'
    if (holder === 'unknown') {
      failures.count(remoteAddress)
      if (wait === undefined) throw new Refusal('unauthorized')
      limited()
      ctx.set('Retry-After', String(secondsUntil(wait)))
      throw new Refusal('rate_limited')
    }
    ctx.state.key = holder
    await next()
  }
}

/** The text of the key, where there is one header and it is well-formed. */
const keyOf = (rawHeaders: readonly string[], header: string | undefined): string | undefined =>
  header === undefined || countHeader(rawHeaders, 'authorization') !== 1 ? undefined : grammar.exec(header)?.[1]
