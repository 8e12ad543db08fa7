/**
 * Holds the ratios of one run against those of another. Times and rates are of a machine and a day, and never compared.
 */
import type { Figure, Row } from '../rig/bench.ts'

/** By how many percent a ratio may be worse. */
export const WORSE_PERCENT = 15

export type Compared = {
  readonly key: string
  readonly before: number
  /** Absent where it was not measured: without Go there is no Go pipe to compare with. */
  readonly now: number | undefined
  /** Negative: better. */
  readonly worsePercent: number | undefined
  readonly isTooMuch: boolean
}

/**
 * Of every ratio with a bound that was kept of a figure measured now. One without a bound has no better and worse.
 * @throws Error when two ratios have one key
 */
export const compareRatios = (kept: readonly Figure[], measured: readonly Figure[]): Compared[] => {
  const now = ratiosOf(measured)
  const names = new Set(measured.map(({ name }) => name))
  return [...ratiosOf(kept.filter(({ name }) => names.has(name)))].map(([key, row]) => {
    const value = now.get(key)?.value
    if (value === undefined)
      return { key, before: row.value, now: undefined, worsePercent: undefined, isTooMuch: false }
    const worsePercent = worseBy(row, value)
    return { key, before: row.value, now: value, worsePercent, isTooMuch: worsePercent > WORSE_PERCENT }
  })
}

const ratiosOf = (figures: readonly Figure[]): Map<string, Row> => {
  const ratios = new Map<string, Row>()
  for (const { name, rows } of figures) {
    for (const row of rows) {
      if (!row.isRatio || (row.atLeast === undefined && row.atMost === undefined)) continue
      const key = `${name}: ${row.key ?? row.what}`
      if (ratios.has(key)) throw new Error(`two ratios have the key "${key}"`)
      ratios.set(key, row)
    }
  }
  return ratios
}

/** In percent of what it was. Of a ratio with both bounds the lower one says what is better. */
const worseBy = ({ value: before, atLeast }: Row, now: number): number =>
  (100 * (atLeast === undefined ? now - before : before - now)) / before
