/**
 * The controls of a close: counts and sums of the records of a period, counted in three ways that share nothing with
 * `/totals`: from the changes (first payouts, then the effect of each replacement), from the records, and from the
 * lines of the payouts. Promises: every sum is exact; a difference of any two of them, or from `/totals`, is an error
 * that names both.
 */
import { differenceOf, Exact, textOfSum } from '../../schemas/money.ts'
import type { Totals } from '../../schemas/resources.ts'
import { CommandError } from '../failures.ts'

/** The fields of records that are counted. */
export type PayoutToCount = {
  readonly id: string
  readonly rep_id: string
  readonly currency: string
  readonly net_amount: string
  readonly supersedes_id: string | null
  readonly line_items: readonly { readonly amount: string }[]
}
export type PayrollToCount = {
  readonly id: string
  readonly currency: string
  readonly amount: string
  readonly reverses_id: string | null
}
export type ChangeToCount =
  | { readonly kind: 'payouts'; readonly record: PayoutToCount }
  | { readonly kind: 'payroll_files'; readonly record: PayrollToCount }

type Sum = { count: number; amount: Exact }
type Sums = Map<string, Sum>
type TotalsOfCurrency = Totals['totals'][number]

const add = (sums: Sums, currency: string, amount: string | Exact, count = 1): void => {
  const sum = sums.get(currency) ?? { count: 0, amount: new Exact(0) }
  sums.set(currency, { count: sum.count + count, amount: sum.amount.plus(amount) })
}
const countIn = (sums: Sums, currency: string): number => sums.get(currency)?.count ?? 0
const amountIn = (sums: Sums, currency: string): string => textOfSum(sums.get(currency)?.amount ?? new Exact(0))

export type ReplacedPayout = {
  readonly rep_id: string
  readonly payout_id: string
  readonly replaces_id: string
  readonly currency: string
  readonly before: string
  readonly after: string
  /** Null if the currency changed. */
  readonly difference: string | null
}

/** Of one currency. */
export type ControlTotals = {
  readonly currency: string
  readonly first_payouts: number
  readonly first_amount: string
  readonly replacements: number
  readonly replaced_amount: string
  readonly owed_count: number
  readonly owed_amount: string
  readonly payments: number
  readonly payments_amount: string
  readonly voids: number
  readonly voids_amount: string
  readonly paid_count: number
  readonly paid_amount: string
  readonly open_amount: string
}

/** One number or amount, in each way that it was counted. Null: this way does not count it. */
export type Reconciled = {
  readonly currency: string
  readonly compared: string
  readonly from_changes: string
  readonly from_records: string | null
  readonly from_lines: string | null
  readonly from_totals: string
}

export type Controls = {
  /** In the order of the feed. Returns what the change replaced, if it replaced a payout. */
  readonly addChange: (change: ChangeToCount) => ReplacedPayout | undefined
  /** A current payout. */
  readonly addPayout: (payout: PayoutToCount) => void
  readonly addPayroll: (record: PayrollToCount) => void
  /** @param totals the rows of this period @throws CommandError unless everything is equal */
  readonly reconcile: (totals: readonly TotalsOfCurrency[]) => {
    readonly totals: readonly ControlTotals[]
    readonly reconciled: readonly Reconciled[]
  }
}

export const createControls = (): Controls => {
  const of = (): Sums => new Map()
  const [first, effect, owedByChanges, payments, voids] = [of(), of(), of(), of(), of()]
  const [owed, lines, paid] = [of(), of(), of()]
  /** Current payouts, as the changes tell. */
  const current = new Map<string, Pick<PayoutToCount, 'currency' | 'net_amount'>>()

  const addPayoutChange = (payout: PayoutToCount): ReplacedPayout | undefined => {
    const { id, rep_id, currency, net_amount, supersedes_id } = payout
    current.set(id, { currency, net_amount })
    add(owedByChanges, currency, net_amount)
    if (supersedes_id === null) {
      add(first, currency, net_amount)
      return undefined
    }
    const before = current.get(supersedes_id)
    if (before === undefined) {
      throw new CommandError(`${id} replaces ${supersedes_id}, which is no current payout in the changes of the period`)
    }
    current.delete(supersedes_id)
    const taken = new Exact(before.net_amount).negated()
    add(owedByChanges, before.currency, taken, -1)
    add(effect, currency, net_amount)
    add(effect, before.currency, taken, 0)
    const isSame = before.currency === currency
    return {
      rep_id,
      payout_id: id,
      replaces_id: supersedes_id,
      currency,
      before: before.net_amount,
      after: net_amount,
      difference: isSame ? differenceOf(before.net_amount, net_amount) : null,
    }
  }

  return {
    addChange: change => {
      if (change.kind === 'payouts') return addPayoutChange(change.record)
      const { currency, amount, reverses_id } = change.record
      add(reverses_id === null ? payments : voids, currency, amount)
      return undefined
    },
    addPayout: ({ currency, net_amount, line_items }) => {
      add(owed, currency, net_amount)
      add(lines, currency, '0', 0)
      for (const { amount } of line_items) add(lines, currency, amount, 0)
    },
    addPayroll: ({ currency, amount }) => add(paid, currency, amount),
    reconcile: rows => {
      const known = [first, effect, payments, voids, owed, paid].flatMap(sums => [...sums.keys()])
      const currencies = [...new Set([...known, ...rows.map(({ currency }) => currency)])].sort()
      const totals = currencies.map((currency): ControlTotals => {
        const [firstAmount, replaced] = [amountIn(first, currency), amountIn(effect, currency)]
        const paidAmount = sumOfAmounts(amountIn(payments, currency), amountIn(voids, currency))
        const owedAmount = sumOfAmounts(firstAmount, replaced)
        return {
          currency,
          first_payouts: countIn(first, currency),
          first_amount: firstAmount,
          replacements: countIn(effect, currency),
          replaced_amount: replaced,
          owed_count: countIn(owedByChanges, currency),
          owed_amount: owedAmount,
          payments: countIn(payments, currency),
          payments_amount: amountIn(payments, currency),
          voids: countIn(voids, currency),
          voids_amount: amountIn(voids, currency),
          paid_count: countIn(payments, currency) + countIn(voids, currency),
          paid_amount: paidAmount,
          open_amount: differenceOf(paidAmount, owedAmount),
        }
      })
      const reconciled = totals.flatMap((counted): Reconciled[] => {
        const { currency } = counted
        const row = rows.find(one => one.currency === currency)
        const of = (
          compared: string,
          from_changes: string | number,
          from_records: string | number,
          from_lines: string | null,
          from_totals: string | number | undefined,
        ): Reconciled => ({
          currency,
          compared,
          from_changes: String(from_changes),
          from_records: String(from_records),
          from_lines,
          from_totals: String(from_totals ?? 0),
        })
        const [owedText, paidText] = [amountIn(owed, currency), amountIn(paid, currency)]
        return [
          of('owed', counted.owed_amount, owedText, amountIn(lines, currency), row?.owed_amount),
          of('current payouts', counted.owed_count, countIn(owed, currency), null, row?.owed_count),
          of('paid', counted.paid_amount, paidText, null, row?.paid_amount),
          of('payroll records', counted.paid_count, countIn(paid, currency), null, row?.paid_count),
          of('open', counted.open_amount, differenceOf(paidText, owedText), null, row?.open_amount),
        ]
      })
      const wrong = reconciled.find(row => !isReconciled(row))
      if (wrong !== undefined) throw new CommandError(sentenceOf(wrong))
      return { totals, reconciled }
    },
  }
}

const sumOfAmounts = (a: string, b: string): string => textOfSum(new Exact(a).plus(b))

const isReconciled = ({ from_changes, from_records, from_lines, from_totals }: Reconciled): boolean =>
  [from_records, from_lines, from_totals].every(value => value === null || value === from_changes)

const sentenceOf = ({
  currency,
  compared,
  from_changes,
  from_records,
  from_lines,
  from_totals,
}: Reconciled): string => {
  const lines = from_lines === null ? '' : `, ${from_lines} in the lines of the payouts`
  const counted = `${from_changes} in the changes, ${from_records} in the records${lines}, ${from_totals} in /totals`
  return `the period does not reconcile: ${compared} in ${currency}: ${counted}. Nothing is written`
}
