/**
 * In: a request under the base path. Out: the same request with the holder of its key.
 * Promises: a missing, repeated or malformed header and an unknown or revoked key get the same answer. Only a
 *   well-formed key without a wrong checksum is looked up. Other requests cost nothing and do not count against their
 *   address. A key with networks is checked for the address of each request, and refused as an unknown one outside.
 * Can go wrong: keys cannot be looked up → `unavailable`, never 401. An address tried too many keys, and the lane for
 *   such addresses is full → `rate_limited`.
 */

import { type ApiKeyCache, type KeyHolder, worksFrom } from '../../core/reading/index.ts'
import { Refusal } from '../../core/runtime/index.ts'
import { hasWrongChecksum } from '../../schemas/key-text.ts'
import { API_KEY_LENGTH_MAX, API_KEY_LENGTH_MIN } from '../../schemas/limits.ts'
import { NOT_STORED, REVALIDATED } from '../http/cache-control.ts'
import type { AddressOf } from '../http/client-address.ts'
import { type Audited, type Authenticated, type Context, countHeader, type Timed } from '../http/request.ts'
import type { Step } from '../http/steps.ts'
import type { AdmitKey } from './admit-keys.ts'

/** Any number of spaces may follow the scheme: RFC 9110. */
const grammar = new RegExp(`^Bearer +([A-Za-z0-9_-]{${API_KEY_LENGTH_MIN},${API_KEY_LENGTH_MAX}})$`, 'i')

type Parts = {
  readonly keys: ApiKeyCache
  readonly admitKey: AdmitKey
  readonly addressOf: AddressOf
  /** Whether clients may keep answers. */
  readonly mayStore: boolean
  /** Called for every request with a key that is in force. */
  readonly onUsed: (key: KeyHolder) => void
  /** Called for every request refused because of its address. */
  readonly onLimited: () => void
}

/** Step: adds the key holder of the request. @throws Refusal `unauthorized`, `rate_limited` or `unavailable` */
export const authenticate = ({
  keys,
  admitKey,
  addressOf,
  mayStore,
  onUsed,
  onLimited,
}: Parts): Step<Timed & Audited, Authenticated> => {
  const findHolder = async (ctx: Context<Timed & Audited>, key: string | undefined) => {
    if (key === undefined) return 'unknown'
    const remembered = keys.remembered(key)
    if (remembered !== undefined) return remembered
    if (hasWrongChecksum(key)) return 'unknown'
    return admitKey(key, addressOf(ctx.req), ctx.state.signal)
  }

  const requireHolder = async (ctx: Context<Timed & Audited>, key: string | undefined) => {
    const holder = await findHolder(ctx, key)
    if (holder === 'unknown') throw new Refusal('unauthorized')
    if (holder === 'refused') {
      onLimited()
      throw new Refusal('rate_limited', { reason: 'key_look_ups_of_address' })
    }
    if (!worksFrom(holder, () => addressOf(ctx.req))) {
      if (ctx.state.read) ctx.state.read.refusedKey = holder
      throw new Refusal('unauthorized', { reason: 'key_outside_its_networks' })
    }
    return holder
  }

  return async (ctx, next) => {
    ctx.set('Cache-Control', mayStore ? REVALIDATED : NOT_STORED)
    ctx.vary('Authorization')
    const text = keyOf(ctx.req.rawHeaders, ctx.req.headers.authorization)
    const key = await requireHolder(ctx, text)
    onUsed(key)
    await next({ key, recheckKey: async () => void (await requireHolder(ctx, text)) })
  }
}

/** Returns the text of the key if there is exactly one header and the header is well-formed. */
const keyOf = (rawHeaders: readonly string[], header: string | undefined): string | undefined =>
  header === undefined || countHeader(rawHeaders, 'authorization') !== 1 ? undefined : grammar.exec(header)?.[1]
