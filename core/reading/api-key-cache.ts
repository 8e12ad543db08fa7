/**
 * In: the text of an API key. Out: its holder and permissions, or `unknown`.
 * Promises: a result is at most KEY_CACHE_TIME old. A caller cannot tell an unknown key from a revoked or an expired
 *   one. A key has expired when this process's clock reaches its expiry, rounded up to a millisecond.
 * Can go wrong: keys are not read completely yet, or cannot be read → `unavailable`, never `unknown`. Never cached.
 */
import { hash } from 'node:crypto'
import { BlockList, isIP } from 'node:net'
import { LRUCache } from 'lru-cache'
import { KEYS_PARTITION } from '../../schemas/partition.ts'
import {
  API_KEYS_GENERATION,
  type ApiKeyDocument,
  type PositionDocument,
  positionId,
} from '../../schemas/stored/documents.ts'
import { controlAddress, layoutOfKeys } from '../../schemas/stored/layout.ts'
import {
  instantToNanoseconds,
  isIPv6Network,
  isKeyPermission,
  isNetwork,
  type KeyPermission,
} from '../../schemas/values.ts'
import { lruOptions, unavailable } from '../runtime/index.ts'
import {
  type DocumentName,
  type DocumentSlice,
  isServed,
  type MultiGet,
  sliceMultiGet,
  smallDocument,
} from '../store/index.ts'
import { KEY_CACHE_TIME, KEYS_REMEMBERED, KEYS_SERVED_TIME } from './limits.ts'

/** Whether an address is in a network of a key. An address that is not known is in none. */
export type IsInNetworks = (address: string | undefined) => boolean

/** The holder of a key. `id` is unique within its organization only; `orgHash` stands for the organization in logs. */
export type KeyHolder = {
  readonly org: string
  readonly orgHash: string
  readonly id: string
  /** May be empty: such a key is valid, and may read nothing. */
  readonly permissions: ReadonlySet<KeyPermission>
  /** Whether the key works from an address. Absent: it works from everywhere. */
  readonly isAllowedFrom?: IsInNetworks
}

/** Whether the key works from the address of a client. A holder may be cached: ask this for each request. */
export const worksFrom = ({ isAllowedFrom }: KeyHolder, address: () => string | undefined): boolean =>
  isAllowedFrom === undefined || isAllowedFrom(address())

/** A key that is not revoked. `expiresAt`: milliseconds since 1970. */
type FoundKey = { readonly holder: KeyHolder; readonly expiresAt: number }

export type ApiKeyCache = {
  /** Returns the cached result; undefined if the key must be looked up. */
  readonly remembered: (key: string) => KeyHolder | 'unknown' | undefined
  readonly lookup: LookupKey
  /** Empties the cache. */
  readonly forget: () => void
  /** Whether the last look-up of the key in this process, at any time, found it valid for this address. */
  readonly wasValid: (key: string, address: string | undefined) => boolean
  /** Rejects with `unavailable` unless keys are served, and can be read. */
  readonly checkServed: (signal: AbortSignal) => Promise<void>
}
type LookupKey = (key: string, signal: AbortSignal) => Promise<KeyHolder | 'unknown'>

/**
 * Creates the look-up of keys and its cache.
 * @param elapsed milliseconds of a monotonic clock
 * @param now milliseconds since 1970
 */
export const createApiKeyCache = (
  prefix: string,
  multiGet: MultiGet,
  elapsed: () => number,
  now: () => number,
): ApiKeyCache => {
  const options = { ...lruOptions(KEYS_REMEMBERED), ttl: KEY_CACHE_TIME, ttlResolution: 0, perf: { now: elapsed } }
  const known = new LRUCache<string, FoundKey>(options)
  const unknown = new LRUCache<string, true>(options)
  const valid = new LRUCache<string, KeyHolder>(lruOptions(KEYS_REMEMBERED))
  const position: DocumentName = {
    ...controlAddress(prefix, positionId(API_KEYS_GENERATION, KEYS_PARTITION)),
    form: 'small',
  }
  const { addressOf } = layoutOfKeys(prefix)
  /** No digest of a key. It is missing if keys can be read. */
  const noKey: DocumentName = { ...addressOf('api-keys', 'none'), form: 'small' }
  /** The `serve_from` of the position when keys were last found served, and when that read began. */
  let served: { readonly from: number; readonly at: number } | undefined

  const read = async (names: readonly DocumentName[], signal: AbortSignal) =>
    sliceMultiGet(await multiGet(names, signal), names)

  /** Returns the holder if the key has not expired. A key can expire while it is cached, or while its request waits. */
  const inForce = (digest: string, { holder, expiresAt }: FoundKey): KeyHolder | 'unknown' => {
    if (now() < expiresAt) return holder
    valid.delete(digest)
    return 'unknown'
  }

  const rememberedOf = (digest: string) => {
    const key = known.get(digest)
    return key ? inForce(digest, key) : unknown.get(digest) && 'unknown'
  }

  const lookup: LookupKey = async (key, signal) => {
    const digest = digestOf(key)
    const remembered = rememberedOf(digest)
    if (remembered !== undefined) return remembered

    const asked = elapsed()
    const servedBefore = served
    const name: DocumentName = { ...addressOf('api-keys', digest), form: 'small' }
    const [documentBefore, positionFound] = await read([name, position], signal)
    served = { from: requireServed(positionFound), at: asked }
    // A multi-get reads different shards in any order. The key document may be from before all keys were projected.
    // Then it is read again. A copy that was restored and adopted since can have the same offset: only after a moment
    // nothing can have come between.
    const isSame = served.from === servedBefore?.from && asked - servedBefore.at < KEYS_SERVED_TIME
    const [document] = isSame ? [documentBefore] : await read([name], signal)
    const found = document && keyIn(document)
    // The age counts from the request: a slow answer is old when it arrives.
    const ttl = Math.max(1, KEY_CACHE_TIME - (elapsed() - asked))
    if (found === undefined) {
      unknown.set(digest, true, { ttl })
      valid.delete(digest)
      return 'unknown'
    }
    known.set(digest, found, { ttl })
    valid.set(digest, found.holder)
    return inForce(digest, found)
  }

  const checkServed = async (signal: AbortSignal) => {
    const asked = elapsed()
    const [, found] = await read([noKey, position], signal)
    served = { from: requireServed(found), at: asked }
  }

  return {
    remembered: key => rememberedOf(digestOf(key)),
    lookup,
    forget: () => {
      known.clear()
      unknown.clear()
    },
    wasValid: (key, address) => {
      const holder = valid.get(digestOf(key))
      return holder !== undefined && worksFrom(holder, () => address)
    },
    checkServed,
  }
}

const digestOf = (key: string): string => hash('sha256', key, 'hex')

/**
 * Returns the position from which keys are served. Before it, an empty or restored index would refuse keys that exist,
 * or serve revoked ones. @throws Refusal `unavailable` if it is not reached, or while documents of keys are removed
 */
const requireServed = (document: DocumentSlice | undefined): number => {
  const body = document && smallDocument<PositionDocument>(document).body
  if (!body || !Number.isSafeInteger(body.position) || !Number.isSafeInteger(body.serve_from)) {
    throw unavailable('no_key_position')
  }
  if (!isServed(body)) throw unavailable('keys_not_read_yet')
  return body.serve_from
}

/** Hexadecimal digits: enough to tell the organizations of an installation apart. */
const ORG_HASH_LENGTH = 16

const keyIn = (document: DocumentSlice): FoundKey | undefined => {
  const { org_id, key_id, revoked, permissions: ofAll, body } = smallDocument<ApiKeyDocument>(document)
  const permissions = body?.within?.permissions ?? body?.permissions ?? ofAll
  if (typeof org_id !== 'string' || typeof key_id !== 'string' || !Array.isArray(permissions)) {
    throw unavailable('key_malformed')
  }
  // A key is in force only if `revoked` is exactly false.
  if (revoked !== false) return undefined
  const orgHash = hash('sha256', org_id, 'hex').slice(0, ORG_HASH_LENGTH)
  // A permission of a newer version permits nothing here.
  const permitted = new Set(permissions.filter(isKeyPermission))
  const isAllowedFrom = networksIn(body)
  const holder = { org: org_id, orgHash, id: key_id, permissions: permitted, ...(isAllowedFrom && { isAllowedFrom }) }
  return { holder, expiresAt: expiryOf(body?.expires_at) }
}

/** Networks that cannot be read are no networks: such a key must not work from everywhere. */
const networksIn = (body: ApiKeyDocument['body'] | undefined): IsInNetworks | undefined => {
  if (body?.within === undefined) return undefined
  const networks: unknown = body.within?.networks
  const found = Array.isArray(networks) ? networksOf(networks) : undefined
  if (found === undefined) throw unavailable('key_malformed')
  return found
}

/** Returns the first whole millisecond that is not before the expiry. */
const expiryOf = (instant: string | undefined): number => {
  if (instant === undefined) return Number.POSITIVE_INFINITY
  const nanoseconds = instantToNanoseconds(instant)
  if (nanoseconds === undefined) throw unavailable('key_malformed')
  return Number((nanoseconds + 999_999n) / 1_000_000n)
}

/** IPv4 addresses in IPv6 form. */
const MAPPED = ['::ffff:0:0', 96, 'ipv6'] as const

/**
 * Returns whether an address is in one of these networks; undefined unless each text is a network: no key works from
 * everywhere by mistake. An IPv4 address in IPv6 form (`::ffff:192.0.2.1`) counts as IPv4, so that it is in no network
 * of IPv6.
 */
export const networksOf = (networks: readonly unknown[]): IsInNetworks | undefined => {
  // One list for both families would not do: in it, `::/0` has all IPv4 addresses too.
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() }
  const mapped = new BlockList()
  mapped.addSubnet(...MAPPED)
  for (const network of networks) {
    if (!isNetwork(network)) return undefined
    const [address = '', bits] = network.split('/')
    const family = isIPv6Network(network) ? 'ipv6' : 'ipv4'
    lists[family].addSubnet(address, Number(bits), family)
  }
  return address => {
    const version = isIP(address ?? '')
    if (address === undefined || version === 0) return false
    if (version === 4) return lists.ipv4.check(address, 'ipv4')
    return lists[mapped.check(address, 'ipv6') ? 'ipv4' : 'ipv6'].check(address, 'ipv6')
  }
}
