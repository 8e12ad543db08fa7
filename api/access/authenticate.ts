/**
 * In: a request under the base path. Out: the same with whose key it carries.
 * Promises: a header that is missing, repeated or malformed and a key that is unknown or revoked answer alike. Only a
 *   well-formed key is looked up, and not where its checksum is wrong; what is not looked up costs nothing and counts
 *   nothing against an address.
 * Can go wrong: keys cannot be looked up → `unavailable`, never 401; an address tried too many keys, and the look-ups
 *   for such addresses are all taken → `rate_limited`.
 */
import { hasWrongChecksum } from '../../schemas/key-text.ts'
import { API_KEY_LENGTH_MAX, API_KEY_LENGTH_MIN } from '../../schemas/limits.ts'
import { Refusal } from '../failures.ts'
import type { AddressOf } from '../http/client-address.ts'
import { type Context, countHeader, type Step } from '../http/request.ts'
import type { Keys } from '../read/api-keys.ts'
import type { AdmitKey } from './admit-keys.ts'

const grammar = new RegExp(`^Bearer ([A-Za-z0-9_-]{${API_KEY_LENGTH_MIN},${API_KEY_LENGTH_MAX}})$`, 'i')

type Parts = {
  readonly keys: Keys
  readonly admitKey: AdmitKey
  readonly addressOf: AddressOf
  /** Told of every request that is refused for its address. */
  readonly limited: () => void
}

export const authenticate = ({ keys, admitKey, addressOf, limited }: Parts): Step => {
  const holderOf = async (ctx: Context, key: string) => {
    const remembered = keys.remembered(key)
    if (remembered !== undefined) return remembered
    if (hasWrongChecksum(key)) return 'unknown'
    return admitKey(key, addressOf(ctx.req), ctx.state.signal)
  }

  return async (ctx, next) => {
    ctx.set('Cache-Control', 'private, no-cache')
    ctx.set('Vary', 'Authorization')
    const key = keyOf(ctx.req.rawHeaders, ctx.req.headers.authorization)
    const holder = key === undefined ? 'unknown' : await holderOf(ctx, key)
    if (holder === 'unknown') throw new Refusal('unauthorized')
    if (holder === 'refused') {
      limited()
      throw new Refusal('rate_limited', { because: 'key_look_ups_of_address' })
    }
    ctx.state.key = holder
    await next()
  }
}

/** The text of the key, where there is one header and it is well-formed. */
const keyOf = (rawHeaders: readonly string[], header: string | undefined): string | undefined =>
  header === undefined || countHeader(rawHeaders, 'authorization') !== 1 ? undefined : grammar.exec(header)?.[1]
