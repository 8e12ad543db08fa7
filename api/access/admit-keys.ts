/**
 * In: a well-formed key that is not in the cache, and the client's address. Out: the holder of the key, `unknown`, or
 *   `refused`: not looked up.
 * Promises: requests with the same key share one look-up. A key that was valid in this process before is always looked
 *   up, and counts nothing. Any other key takes a try of its address, and gives it back unless the key is unknown, even
 *   if its clients leave. For an address outside its networks, a key is as an unknown one. Without a try left, a key
 *   goes through a lane of few look-ups. Until this lane is full, no other client of the address is refused because of
 *   the tries.
 * Can go wrong: keys cannot be looked up, or too many look-ups wait → `unavailable`, which counts nothing.
 */

import { type ApiKeyCache, type KeyHolder, type Shares, worksFrom } from '../../core/reading/index.ts'
import { type Schedule, unavailable, waitOrAbort, withTimeLimit } from '../../core/runtime/index.ts'
import { READ_TIME_MAX } from '../../core/store/index.ts'
import type { FailedLogins } from './failed-logins.ts'

type Lanes = Pick<Shares, 'keyLookups' | 'keyLookupsExhausted'>
type Admission = KeyHolder | 'unknown' | 'refused'
export type AdmitKey = (key: string, address: string | undefined, signal: AbortSignal) => Promise<Admission>

/** Creates the look-up of keys that are not in the cache. It rejects with `unavailable` if keys cannot be looked up. */
export const createAdmitKey = (keys: ApiKeyCache, failures: FailedLogins, lanes: Lanes, later: Schedule): AdmitKey => {
  const inFlight = new Map<string, Promise<Admission>>()

  const lookupCounted = async (key: string, address: string | undefined, signal: AbortSignal): Promise<Admission> => {
    if (keys.wasValid(key, address)) return keys.lookup(key, signal)
    const takeBack = failures.reserve(address)
    let result: Admission | undefined
    try {
      const release = await (takeBack ? lanes.keyLookups : lanes.keyLookupsExhausted).acquire(signal)
      if (!release) {
        if (takeBack) throw unavailable('key_look_ups')
        result = 'refused'
        return result
      }
      try {
        result = await keys.lookup(key, signal)
        return result
      } finally {
        release()
      }
    } finally {
      const isUnknown = result === 'unknown' || (typeof result === 'object' && !worksFrom(result, () => address))
      if (!isUnknown) takeBack?.()
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
