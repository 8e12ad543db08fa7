/**
 * Exact sums by period and currency: what is owed, and what was paid. In: amounts, each with how often it occurs. Out:
 * the rows of totals. Promises: an amount that is added and taken away again leaves no trace.
 */
import { Exact, textOfSum } from '../../../schemas/money.ts'
import type { BalanceRow } from '../../../schemas/stored/documents.ts'
import type { CountedCombination } from './combinations.ts'

type Sum = { amount: Exact; count: number }
type Group = { readonly owed: Sum; readonly paid: Sum }
/** By period and currency. */
export type Groups = Map<string, Group>
export type SumName = keyof Group

/** The fields whose combinations are counted. */
export const amountFields = ['period_id', 'currency', 'amount'] as const
export type CountedAmount = CountedCombination<(typeof amountFields)[number]>

const nothing = (): Sum => ({ amount: new Exact(0), count: 0 })

/** Adds an amount as often as it occurs, or takes it away. */
export const addAmount = (
  groups: Groups,
  what: SumName,
  sign: 1 | -1,
  { key: { period_id, currency, amount }, doc_count }: CountedAmount,
): void => {
  const name = `${period_id} ${currency}`
  const group = groups.get(name) ?? { owed: nothing(), paid: nothing() }
  groups.set(name, group)
  group[what].amount = group[what].amount.plus(new Exact(amount).times(sign * doc_count))
  group[what].count += sign * doc_count
}

export const rowsOf = (groups: Groups): BalanceRow[] =>
  [...groups]
    .filter(([, { owed, paid }]) => owed.count > 0 || paid.count > 0)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, { owed, paid }]) => {
      const [period_id = '', currency = ''] = name.split(' ')
      return {
        period_id,
        currency,
        owed_amount: textOfSum(owed.amount),
        owed_count: owed.count,
        paid_amount: textOfSum(paid.amount),
        paid_count: paid.count,
      }
    })

/** Returns the sums from which these rows were made. */
export const groupsOf = (rows: readonly BalanceRow[]): Groups =>
  new Map(
    rows.map(({ period_id, currency, owed_amount, owed_count, paid_amount, paid_count }) => [
      `${period_id} ${currency}`,
      {
        owed: { amount: new Exact(owed_amount), count: owed_count },
        paid: { amount: new Exact(paid_amount), count: paid_count },
      },
    ]),
  )
