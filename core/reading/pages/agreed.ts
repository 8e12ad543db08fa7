/**
 * A cache of what searches found. An old copy of a shard may answer a search for a moment (docs/scale.md): no cache may
 * make this moment longer.
 * Promises: a value is kept only if two searches found it, and the second one began at least AGREED_AFTER after the
 *   first one ended. Until then it is known for AGREED_AFTER, and the next request searches again.
 */
import { LRUCache } from 'lru-cache'
import { AGREED_AFTER } from '../limits.ts'

/** A value made from several searches has the earliest `begun` and `until` of them. In milliseconds since 1970. */
export type Known<Value> = {
  readonly value: Value
  readonly begun: number
  readonly foundAt: number
  /** Until when it is known; infinity once two searches agree. */
  readonly until: number
}
type Basis = Pick<Known<unknown>, 'begun' | 'until'>

/** A value that needs no search. */
export const certain = { begun: Number.POSITIVE_INFINITY, until: Number.POSITIVE_INFINITY } as const

/** Whether two searches agree on a value. */
export const isCertain = ({ until }: Basis): boolean => until === certain.until

export type Agreed<Value> = {
  readonly get: (key: string) => Known<Value> | undefined
  /**
   * Call this before a search. It returns what remembers the found value.
   * @param basis the known value that the next one is made from
   */
  readonly begin: (basis?: Basis) => (key: string, value: Value) => Known<Value>
}

/** Creates the cache. @param now milliseconds since 1970 */
export const createAgreed = <Value extends string | number | object>(
  bounds: { readonly maxSize: number; readonly sizeCalculation: (value: Value, key: string) => number },
  now: () => number,
  areSame: (one: Value, other: Value) => boolean = Object.is,
): Agreed<Value> => {
  const entries = new LRUCache<string, Known<Value>>({
    maxSize: bounds.maxSize,
    sizeCalculation: ({ value }, key) => bounds.sizeCalculation(value, key),
  })

  const remember = (key: string, known: Known<Value>): Known<Value> => {
    entries.set(key, known)
    return known
  }

  /** A clock that was set back makes nothing known for longer. */
  const isKnown = (known: Known<Value>): boolean => isCertain(known) || (now() < known.until && now() >= known.foundAt)

  return {
    get: key => {
      const known = entries.get(key)
      return known && isKnown(known) ? known : undefined
    },
    begin: (basis = certain) => {
      const begun = Math.min(basis.begun, now())
      return (key, value) => {
        const foundAt = now()
        const before = entries.get(key)
        if (before !== undefined && areSame(before.value, value)) {
          if (isCertain(before)) return before
          if (begun - before.foundAt >= AGREED_AFTER) return remember(key, { value, foundAt, ...certain })
          // It was found just before: many requests delay no agreement.
          if (isKnown(before)) return before
        }
        return remember(key, { value, begun, foundAt, until: Math.min(basis.until, foundAt + AGREED_AFTER) })
      }
    },
  }
}
