/** Totals of an organization by period and currency, on both sides of a comparison. Exact. */
import { isSameAmount, total } from './sums.ts'

type Pair = readonly [a: string, b: string]
/** An empty period stands for all. */
export type ComparedTotals = {
  readonly period: string
  readonly currency: string
  readonly owed: Pair
  readonly paid: Pair
}
type Money = ReadonlyMap<string, string>

const nothing: Pair = ['0', '0']

/** Every period and currency, equal ones too. @param a sums by `owed rep_1 period_1 EUR` */
export const periodTotals = (a: Money, b: Money): ComparedTotals[] => {
  const sums = new Map<string, { owed: Pair; paid: Pair }>()
  for (const key of new Set([...a.keys(), ...b.keys()])) {
    const [what, , period, currency] = key.split(' ')
    if (what !== 'owed' && what !== 'paid') throw new Error('a sum of neither what is owed nor what was paid')
    const of = sums.get(`${period} ${currency}`) ?? { owed: nothing, paid: nothing }
    const [before, after] = of[what]
    of[what] = [total([before, a.get(key) ?? '0']), total([after, b.get(key) ?? '0'])]
    sums.set(`${period} ${currency}`, of)
  }
  return [...sums]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, of]) => {
      const [period = '', currency = ''] = key.split(' ')
      return { period, currency, ...of }
    })
}

/** Totals of all periods, by currency. */
export const currencyTotals = (totals: readonly ComparedTotals[]): ComparedTotals[] =>
  [...Map.groupBy(totals, ({ currency }) => currency)]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([currency, of]) => {
      const sum = (what: 'owed' | 'paid'): Pair => [
        total(of.map(row => row[what][0])),
        total(of.map(row => row[what][1])),
      ]
      return { period: '', currency, owed: sum('owed'), paid: sum('paid') }
    })

export const isDifferent = ({ owed, paid }: ComparedTotals): boolean => !isSameAmount(...owed) || !isSameAmount(...paid)
