/**
 * How often an address came without a valid key. In: addresses. Out: whether one has come too often, and for how long it is.
 * Promises: bounded memory, whoever comes; addresses that only differ where one network hands them out are one.
 */
import { isIPv6 } from 'node:net'
import { LRUCache } from 'lru-cache'
import { ADDRESSES_REMEMBERED, FAILURES_PER_ADDRESS, FAILURES_WINDOW_SECONDS } from './limits.ts'

export type Failures = {
  /** Counts one. */
  readonly count: (address: string | undefined) => void
  /** Milliseconds until it may fail again; undefined while it may. */
  readonly exhausted: (address: string | undefined) => number | undefined
}

/** @param now milliseconds of a clock that never goes back */
export const createFailures = (now: () => number, most = FAILURES_PER_ADDRESS): Failures => {
  const windows = new LRUCache<string, { count: number; readonly ends: number }>({ max: ADDRESSES_REMEMBERED })
  const windowOf = (address: string | undefined) => {
    const window = windows.get(networkOf(address))
    return window !== undefined && window.ends > now() ? window : undefined
  }
  return {
    count: address => {
      const window = windowOf(address)
      if (window) window.count++
      else windows.set(networkOf(address), { count: 1, ends: now() + FAILURES_WINDOW_SECONDS * 1_000 })
    },
    exhausted: address => {
      const window = windowOf(address)
      return window !== undefined && window.count >= most ? window.ends - now() : undefined
    },
  }
}

/** Who is counted as one: an IPv4 address, or the 64 bits of an IPv6 address that a network is known by. */
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
