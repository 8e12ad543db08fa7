/**
 * In: a well-formed key that is not remembered, and the address that it came from. Out: its holder, `unknown`, or
 * `refused`: not looked up.
 * Promises: a key is looked up once, however many requests carry it at the same time, and each look-up is counted once,
 *   by its result, whatever its clients do meanwhile. A key that was valid here before is always looked up. So is any
 *   other while its address has tries left; then it goes through a lane of few look-ups, so that one who tries keys
 *   behind an address refuses nobody else behind it before that lane is full.
 * Can go wrong: keys cannot be looked up, or too many are being looked up → `unavailable`, which counts nothing.
 */

import type { Shares } from '../capacity/shares.ts'
import { unavailable } from '../failures.ts'
import { READ_TIME_MAX } from '../limits.ts'
import type { KeyHolder, Keys } from '../read/api-keys.ts'
import { type Later, untilOver, withTimeLimit } from '../time-limits.ts'
import type { Failures } from './failed-logins.ts'

type Lanes = Pick<Shares, 'keyLookUps' | 'keyLookUpsExhausted'>
export type Admission = KeyHolder | 'unknown' | 'refused'
export type AdmitKey = (key: string, address: string | undefined, signal: AbortSignal) => Promise<Admission>

export const createAdmitKey = (keys: Keys, failures: Failures, lanes: Lanes, later: Later): AdmitKey => {
  const underWay = new Map<string, Promise<Admission>>()

  const lookUp = async (key: string, address: string | undefined, signal: AbortSignal): Promise<Admission> => {
    if (keys.wasValid(key)) return keys.lookUp(key, signal)
    const takeBack = failures.reserve(address)
    let result: Admission | undefined
    try {
      const release = await (takeBack ? lanes.keyLookUps : lanes.keyLookUpsExhausted).acquire(signal)
      if (!release) {
        if (takeBack) throw unavailable('key_look_ups')
        result = 'refused'
        return result
      }
      try {
        result = await keys.lookUp(key, signal)
        return result
      } finally {
        release()
      }
    } finally {
      if (result !== 'unknown') takeBack?.()
    }
  }

  /** Not ended by the requests that wait for it: only by its own time. */
  const begin = async (key: string, address: string | undefined): Promise<Admission> => {
    try {
      return await withTimeLimit(READ_TIME_MAX, later, signal => lookUp(key, address, signal))
    } finally {
      underWay.delete(key)
    }
  }

  return (key, address, signal) => {
    const running = underWay.get(key)
    if (running !== undefined) return untilOver(running, signal)
    const begun = begin(key, address)
    // Every request may be gone before it ends.
    begun.catch(() => undefined)
    underWay.set(key, begun)
    return untilOver(begun, signal)
  }
}
