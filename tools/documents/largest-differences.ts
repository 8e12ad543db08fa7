/**
 * The largest differences of each currency. In: rows of money. Out: at most so many of each currency, the largest
 * first. Promises: it keeps few rows, however many it is given.
 */
import { Exact } from '../../schemas/money.ts'
import type { DifferenceRow } from './rows.ts'

export type LargeDifference = {
  readonly row: DifferenceRow
  /** Names of the rep and of the period, if they are known. */
  readonly rep: string | undefined
  readonly period: string | undefined
}

/** The distance of a difference from zero. */
export const sizeOf = ({ difference }: DifferenceRow): Exact => new Exact(difference ?? 0).abs()

export const largestDifferences = (most: number) => {
  const kept = new Map<string, LargeDifference[]>()
  const largest = (all: readonly LargeDifference[]): LargeDifference[] =>
    all.toSorted((one, other) => sizeOf(other.row).cmp(sizeOf(one.row))).slice(0, most)
  return {
    add: (difference: LargeDifference): void => {
      const currency = difference.row.currency ?? ''
      const all = [...(kept.get(currency) ?? []), difference]
      kept.set(currency, all.length > 2 * most ? largest(all) : all)
    },
    /** In the order of the currencies. */
    all: (): (readonly [currency: string, largest: readonly LargeDifference[]])[] =>
      [...kept].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([currency, all]) => [currency, largest(all)]),
  }
}
