/**
 * Counts unknown keys by address. In: an address. Out: whether the address may try another key.
 * Promises: memory is bounded for any number of addresses. Addresses of one IPv6 network count as one. A try counts
 *   before its look-up: otherwise many parallel tries would start before the first one counts.
 */
import { LRUCache } from 'lru-cache'
import { atMost, type Release } from '../../core/runtime/index.ts'
import { networkOf } from '../http/client-address.ts'
import { ADDRESSES_REMEMBERED, FAILURES_PER_ADDRESS, FAILURES_WINDOW_SECONDS } from '../limits.ts'

export type FailedLogins = {
  /** Whether the address has a try left. Counts nothing. */
  readonly hasTry: (address: string | undefined) => boolean
  /** Counts a try, and returns a function that takes the try back; undefined if the address has no try left. */
  readonly reserve: (address: string | undefined) => Release | undefined
}

/** @param elapsed milliseconds of a monotonic clock */
export const createFailedLogins = (elapsed: () => number, max = FAILURES_PER_ADDRESS): FailedLogins => {
  const windows = new LRUCache<string, { count: number; readonly ends: number }>(atMost(ADDRESSES_REMEMBERED))
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
