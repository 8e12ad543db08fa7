/**
 * A cache of what searches found. An old copy of a shard may answer a search for a moment (docs/scale.md): no cache may
 * make this moment longer.
 * Promises: a value is kept only if two searches found it, and the second one began at least AGREED_AFTER after the
 *   first one ended. Until then it is known for AGREED_AFTER, and the next request searches again. Between both, a
 *   check of the indices began and passed: no role hid documents from both, and no field of others was searched.
 */
import { LRUCache } from 'lru-cache'
import { AGREED_AFTER } from '../limits.ts'

/** The checks of the indices have numbers, in the order in which they begin. */
export type Proofs = {
  /** The last check that began. */
  readonly begun: () => number
  /** By name of a generation: the last check that passed. */
  readonly passed: () => ReadonlyMap<string, number>
}

/**
 * A value made from several searches has the earliest `begun`, `proved` and `until` of them. Times are in milliseconds
 * of a monotonic clock: a step of the machine's clock is no pause between two searches.
 */
export type Known<Value> = {
  readonly value: Value
  readonly begun: number
  /** The last check that had passed when its search began. */
  readonly proved: number
  /** When the first search of those that agree ended. */
  readonly foundAt: number
  /** The last check that had begun then. */
  readonly foundAfter: number
  /** Until when it is known; infinity once two searches agree. */
  readonly until: number
}
type Basis = Pick<Known<unknown>, 'begun' | 'proved' | 'until'>

/** A value that needs no search. */
const ALWAYS = Number.POSITIVE_INFINITY
export const certain = { begun: ALWAYS, proved: ALWAYS, until: ALWAYS } as const

/** Whether two searches agree on a value. */
export const isCertain = ({ until }: Basis): boolean => until === certain.until

export type Agreed<Value> = {
  readonly get: (key: string) => Known<Value> | undefined
  /**
   * Call this before a search. It returns what remembers the found value.
   * @param basis the known value that the next one is made from
   */
  readonly begin: (basis?: Basis) => (key: string, value: Value, generation: string) => Known<Value>
}

/**
 * Creates the cache.
 * @param elapsed milliseconds of a monotonic clock
 * @param proofs undefined: nothing checks the indices
 */
export const createAgreed = <Value extends string | number | object>(
  bounds: { readonly maxSize: number; readonly sizeCalculation: (value: Value, key: string) => number },
  elapsed: () => number,
  proofs: Proofs | undefined,
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

  const isKnown = ({ until }: Known<Value>): boolean => elapsed() < until

  return {
    get: key => {
      const known = entries.get(key)
      return known && isKnown(known) ? known : undefined
    },
    begin: (basis = certain) => {
      const begun = Math.min(basis.begun, elapsed())
      const passed = proofs?.passed()
      return (key, value, generation) => {
        const proved = Math.min(basis.proved, passed ? (passed.get(generation) ?? 0) : ALWAYS)
        const found = { foundAt: elapsed(), foundAfter: proofs?.begun() ?? 0 }
        const until = Math.min(basis.until, found.foundAt + AGREED_AFTER)
        const before = entries.get(key)
        if (before === undefined || !areSame(before.value, value)) {
          return remember(key, { value, begun, proved, ...found, until })
        }
        if (isCertain(before)) return before
        if (begun - before.foundAt >= AGREED_AFTER && proved > before.foundAfter) {
          return remember(key, { value, ...found, ...certain })
        }
        // It was found before: many requests, and a check that still runs, delay no agreement.
        return isKnown(before) ? before : remember(key, { ...before, begun, proved, until })
      }
    },
  }
}
