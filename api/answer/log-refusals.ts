/**
 * Decides which requests of a possible flood get a log line. In: the address of a request without a valid key, or over
 * a limit. Out: how many of these requests of this address got no line since its last line; undefined if this one gets
 * none.
 * Promises: a flood does not fill the log. In a window, one address gets REFUSALS_LOGGED lines, and all addresses get
 *   REFUSALS_LOGGED_IN_ALL. The metrics count every request.
 */
import { LRUCache } from 'lru-cache'
import { atMost } from '../../core/runtime/index.ts'
import { networkOf } from '../http/client-address.ts'
import { ADDRESSES_REMEMBERED, REFUSALS_LOGGED, REFUSALS_LOGGED_IN_ALL, REFUSALS_LOGGED_SECONDS } from '../limits.ts'

export type AdmitLine = (address: string | undefined) => { readonly unlogged: number } | undefined
type Window = { readonly ends: number; lines: number }

/** @param elapsed milliseconds of a monotonic clock */
export const createRefusalLog = (elapsed: () => number): AdmitLine => {
  const windows = new LRUCache<string, Window & { unlogged: number }>(atMost(ADDRESSES_REMEMBERED))
  const newWindow = (): Window => ({ ends: elapsed() + REFUSALS_LOGGED_SECONDS * 1_000, lines: 0 })
  let all = newWindow()

  return address => {
    const network = networkOf(address)
    if (elapsed() >= all.ends) all = newWindow()
    const before = windows.get(network)
    const window = before && elapsed() < before.ends ? before : { ...newWindow(), unlogged: before?.unlogged ?? 0 }
    windows.set(network, window)
    if (window.lines >= REFUSALS_LOGGED || all.lines >= REFUSALS_LOGGED_IN_ALL) {
      window.unlogged++
      return undefined
    }
    window.lines++
    all.lines++
    const { unlogged } = window
    window.unlogged = 0
    return { unlogged }
  }
}
