/**
 * In: a request under the base path. Out: the same request with the holder of its key.
 * Promises: a missing, repeated or malformed header and an unknown or revoked key get the same answer. Only a
 *   well-formed key without a wrong checksum is looked up. Other requests cost nothing and do not count against their
 *   address. A key with networks is checked for the address of each request, and refused as an unknown one outside.
 * Can go wrong: keys cannot be looked up → `unavailable`, never 401. An address tried too many keys, and the lane for
 *   such addresses is full → `rate_limited`.
 *
 * `createAdmitKey` looks up well-formed keys that are not in the cache. Requests with the same key share one look-up.
 *   A key that was valid in this process before is always looked up, and counts nothing. Any other key takes a try of
 *   its address when its look-up begins, and gives it back unless the key is unknown, even if its clients leave. A key
 *   that queues takes none: after a start, any number of valid keys of one address come at once. For an address outside
 *   its networks, a key counts as unknown. Without a try left, a key goes through a lane of few look-ups: many clients
 *   can share an address (a load balancer, an office), so a well-formed key is never refused for it alone. Until this
 *   lane is full, no other client of the address is refused because of the tries. If keys cannot be looked up, or too
 *   many look-ups wait, it rejects with `unavailable`, which counts nothing.
 */
import { LRUCache } from 'lru-cache'
import { type ApiKeyCache, type KeyHolder, worksFrom } from '../../core/reading/index.ts'
import {
  lruOptions,
  Refusal,
  type Release,
  type Schedule,
  unavailable,
  waitOrAbort,
  withTimeLimit,
} from '../../core/runtime/index.ts'
import { READ_TIME_MAX } from '../../core/store/index.ts'
import { hasWrongChecksum } from '../../schemas/key-text.ts'
import { API_KEY_LENGTH_MAX, API_KEY_LENGTH_MIN } from '../../schemas/limits.ts'
import { type AddressOf, networkOf } from '../http/client-address.ts'
import { type Audited, type Authenticated, type Context, countHeader, type Step, type Timed } from '../http/request.ts'
import { ADDRESSES_REMEMBERED, FAILURES_PER_ADDRESS, FAILURES_WINDOW_SECONDS } from '../limits.ts'
import type { Shares } from './permits.ts'

/** Any number of spaces may follow the scheme: RFC 9110. */
const grammar = new RegExp(`^Bearer +([A-Za-z0-9_-]{${API_KEY_LENGTH_MIN},${API_KEY_LENGTH_MAX}})$`, 'i')

/** `Cache-Control`: a client may keep the answer, and asks again whether it is still the same. */
export const REVALIDATED = 'private, no-cache'
/** `Cache-Control`: nobody may keep the answer. */
const NOT_STORED = 'no-store'

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

/**
 * Step: adds the key holder of the request. A key that is remembered, or valid, leaves no failed login behind: only an
 * unknown key counts for its address.
 * @throws Refusal `unauthorized`, `rate_limited` or `unavailable`
 */
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
      if (ctx.state.audited) ctx.state.audited.refusedKey = holder
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

type Lanes = Pick<Shares, 'keyLookups' | 'keyLookupsExhausted'>
type Admission = KeyHolder | 'unknown' | 'refused'
export type AdmitKey = (key: string, address: string | undefined, signal: AbortSignal) => Promise<Admission>

/** Creates the look-up of keys that are not in the cache: the holder, `unknown`, or `refused`: not looked up. */
export const createAdmitKey = (keys: ApiKeyCache, failures: FailedLogins, lanes: Lanes, later: Schedule): AdmitKey => {
  const inFlight = new Map<string, Promise<Admission>>()

  const lookupCounted = async (key: string, address: string | undefined, signal: AbortSignal): Promise<Admission> => {
    if (keys.wasValid(key, address)) return keys.lookup(key, signal)
    if (failures.hasTry(address)) {
      const release = await lanes.keyLookups.acquire(signal)
      if (!release) throw unavailable('key_look_ups')
      try {
        const takeBack = failures.reserve(address)
        // Other keys of the address may have used its tries while this one was in the queue.
        if (takeBack) return await lookupTried(key, address, takeBack, signal)
      } finally {
        release()
      }
    }
    const release = await lanes.keyLookupsExhausted.acquire(signal)
    if (!release) return 'refused'
    try {
      return await keys.lookup(key, signal)
    } finally {
      release()
    }
  }

  const lookupTried = async (key: string, address: string | undefined, takeBack: Release, signal: AbortSignal) => {
    let result: KeyHolder | 'unknown' | undefined
    try {
      result = await keys.lookup(key, signal)
      return result
    } finally {
      const isUnknown = result === 'unknown' || (typeof result === 'object' && !worksFrom(result, () => address))
      if (!isUnknown) takeBack()
    }
  }

  /** Only the time limit ends a look-up, not the requests that wait for it. */
  const begin = async (name: string, key: string, address: string | undefined): Promise<Admission> => {
    try {
      return await withTimeLimit(READ_TIME_MAX, later, signal => lookupCounted(key, address, signal))
    } finally {
      inFlight.delete(name)
    }
  }

  return (key, address, signal) => {
    // An address outside the networks of a key that is in use must not have it refused elsewhere for its own tries.
    const name = keys.wasValid(key, address) ? `${key} valid` : key
    const running = inFlight.get(name)
    if (running !== undefined) return waitOrAbort(running, signal)
    const begun = begin(name, key, address)
    // Every request may be gone before the look-up fails.
    begun.catch(() => undefined)
    inFlight.set(name, begun)
    return waitOrAbort(begun, signal)
  }
}

export type FailedLogins = {
  /** Whether the address has a try left. Counts nothing. */
  readonly hasTry: (address: string | undefined) => boolean
  /** Counts a try, and returns a function that takes the try back; undefined if the address has no try left. */
  readonly reserve: (address: string | undefined) => Release | undefined
}

/**
 * Counts unknown keys by address. Memory is bounded for any number of addresses. Addresses of one IPv6 network count as
 * one. A try counts before its look-up: otherwise many parallel tries would start before the first one counts. It stays
 * counted only if the look-up fails to find a key that works.
 * @param elapsed milliseconds of a monotonic clock
 */
export const createFailedLogins = (elapsed: () => number, max = FAILURES_PER_ADDRESS): FailedLogins => {
  const windows = new LRUCache<string, { count: number; readonly ends: number }>(lruOptions(ADDRESSES_REMEMBERED))
  const windowOf = (network: string) => {
    const known = windows.get(network)
    if (known !== undefined && known.ends > elapsed()) return known
    const window = { count: 0, ends: elapsed() + FAILURES_WINDOW_SECONDS * 1_000 }
    windows.set(network, window)
    return window
  }
  return {
    hasTry: address => windowOf(networkOf(address)).count < max,
    reserve: address => {
      const window = windowOf(networkOf(address))
      if (window.count >= max) return undefined
      window.count++
      let isTakenBack = false
      return () => {
        if (!isTakenBack) window.count--
        isTakenBack = true
      }
    },
  }
}
