/**
 * Counts unknown keys by address. In: an address. Out: whether the address may try another key.
 * Promises: memory is bounded for any number of addresses. Addresses of one IPv6 network count as one. A try counts
 *   before its look-up: otherwise many parallel tries would start before the first one counts.
 */
import { isIPv6 } from 'node:net'
import { LRUCache } from 'lru-cache'
import type { Release } from '../../core/runtime/index.ts'
import { ADDRESSES_REMEMBERED, FAILURES_PER_ADDRESS, FAILURES_WINDOW_SECONDS } from '../limits.ts'

export type FailedLogins = {
  /** Counts a try, and returns a function that takes the try back; undefined if the address has no try left. */
  readonly reserve: (address: string | undefined) => Release | undefined
}

/** @param elapsed milliseconds of a monotonic clock */
export const createFailedLogins = (elapsed: () => number, max = FAILURES_PER_ADDRESS): FailedLogins => {
  const windows = new LRUCache<string, { count: number; readonly ends: number }>({ max: ADDRESSES_REMEMBERED })
  const windowOf = (network: string) => {
    const known = windows.get(network)
    if (known !== undefined && known.ends > elapsed()) return known
    const window = { count: 0, ends: elapsed() + FAILURES_WINDOW_SECONDS * 1_000 }
    windows.set(network, window)
    return window
  }
  return {
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

/** Returns what counts as one address: an IPv4 address, or the 64 bits of an IPv6 address that name its network. */
export const networkOf = (address = ''): string => {
  const [, v4] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address) ?? []
  if (v4 !== undefined) return v4
  if (!isIPv6(address)) return address
  const [before = '', after] = address.split('%', 1)[0]?.toLowerCase().split('::') ?? []
  const groups = before === '' ? [] : before.split(':')
  const missing = after === undefined ? 0 : 8 - groups.length - (after === '' ? 0 : after.split(':').length)
  const whole = [...groups, ...Array.from({ length: missing }, () => '0'), ...(after ? after.split(':') : [])]
  return whole
    .slice(0, 4)
    .map(group => Number.parseInt(group, 16).toString(16))
    .join(':')
}
