/**
 * In: a request under the base path. Out: the same with whose key it carries.
 * Promises: a header that is missing, repeated or malformed and a key that is unknown or revoked answer alike; only a well-formed key is hashed.
 * Can go wrong: keys cannot be looked up → `unavailable`, never 401.
 */
import { API_KEY_LENGTH_MAX, API_KEY_LENGTH_MIN } from '../schemas/limits.ts'
import { Refusal } from './failures.ts'
import type { LookUpKey } from './keys.ts'
import { countHeader, type Step } from './request.ts'

const grammar = new RegExp(`^Bearer ([A-Za-z0-9_-]{${API_KEY_LENGTH_MIN},${API_KEY_LENGTH_MAX}})$`, 'i')

export const authenticate = (lookUpKey: LookUpKey): Step => {
  return async (ctx, next) => {
    ctx.set('Cache-Control', 'private, no-cache')
    ctx.set('Vary', 'Authorization')
    const key = keyOf(ctx.req.rawHeaders, ctx.req.headers.authorization)
    const holder = key === undefined ? 'unknown' : await lookUpKey(key, ctx.state.signal)
    if (holder === 'unknown') throw new Refusal('unauthorized')
    ctx.state.key = holder
    await next()
  }
}

/** The text of the key, where there is one header and it is well-formed. */
const keyOf = (rawHeaders: readonly string[], header: string | undefined): string | undefined =>
  header === undefined || countHeader(rawHeaders, 'authorization') !== 1 ? undefined : grammar.exec(header)?.[1]
