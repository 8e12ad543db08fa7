/** Compares the ratios of two runs. Times and rates depend on machine and day, so they are not compared. */
import type { Figure, FigureRow } from '../rig/bench.ts'

/** Percent that a ratio may be worse than the stored one. */
export const WORSE_PERCENT = 15

export type ComparedRatio = {
  readonly key: string
  readonly before: number
  /** Undefined if not measured: without Go there is no Go pipe. */
  readonly now: number | undefined
  /** Negative: better. */
  readonly worsePercent: number | undefined
  readonly isTooMuch: boolean
}

/**
 * Compares every stored ratio that has a bound and whose figure was measured now. Only a bound shows which value is
 * better.
 * @throws Error if two ratios have the same key
 */
export const compareRatios = (kept: readonly Figure[], measured: readonly Figure[]): ComparedRatio[] => {
  const now = ratiosOf(measured)
  const names = new Set(measured.map(({ name }) => name))
  return [...ratiosOf(kept.filter(({ name }) => names.has(name)))].map(([key, row]) => {
    const value = now.get(key)?.value
    if (value === undefined)
      return { key, before: row.value, now: undefined, worsePercent: undefined, isTooMuch: false }
    const worsePercent = worseBy(row, value)
    // NaN is neither better nor worse: nothing was measured.
    const isTooMuch = !Number.isFinite(worsePercent) || worsePercent > WORSE_PERCENT
    return { key, before: row.value, now: value, worsePercent, isTooMuch }
  })
}

const ratiosOf = (figures: readonly Figure[]): Map<string, FigureRow> => {
  const ratios = new Map<string, FigureRow>()
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

/** In percent of the value before. With both bounds, the lower one shows which value is better. */
const worseBy = ({ value: before, atLeast }: FigureRow, now: number): number =>
  (100 * (atLeast === undefined ? now - before : before - now)) / before
