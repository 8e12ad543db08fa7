/** Sums of a copy, and their first difference to those of the API. They are exact. */
import { Decimal } from 'decimal.js'
import type { ControlTotal } from './checkpoint.ts'
import type { Payout, PayrollRecord, Total } from './client.ts'

/** Adds exactly: an amount has at most 40 digits before the point and 40 after it. */
const Exact = Decimal.clone({ precision: 200, toExpPos: 200, toExpNeg: -200 })
type Sum = { owed: Decimal; owedCount: number; paid: Decimal; paidCount: number }

/** Adds up owed, paid and open, by period and currency. */
export const addRecords = (payouts: Iterable<Payout>, payrollRecords: Iterable<PayrollRecord>): Total[] => {
  const sums = new Map<string, Sum>()
  const sumOf = ({ period_id, currency }: Pick<Total, 'period_id' | 'currency'>): Sum => {
    const group = `${period_id} ${currency}`
    const sum = sums.get(group) ?? { owed: new Exact(0), owedCount: 0, paid: new Exact(0), paidCount: 0 }
    sums.set(group, sum)
    return sum
  }
  for (const payout of payouts) {
    const sum = sumOf(payout)
    sum.owed = sum.owed.plus(payout.net_amount)
    sum.owedCount++
  }
  for (const record of payrollRecords) {
    const sum = sumOf(record)
    sum.paid = sum.paid.plus(record.amount)
    sum.paidCount++
  }
  return [...sums].map(([group, { owed, owedCount, paid, paidCount }]) => {
    const [period_id = '', currency = ''] = group.split(' ')
    const open_amount = owed.minus(paid).toFixed()
    const amounts = { owed_amount: owed.toFixed(), paid_amount: paid.toFixed(), open_amount }
    return { period_id, currency, owed_count: owedCount, paid_count: paidCount, ...amounts }
  })
}

/** `open_amount` is computed from them. */
const fields = ['owed_amount', 'owed_count', 'paid_amount', 'paid_count'] as const

/** Returns the first total that differs, in words; undefined if none does. */
export const differenceOfTotals = (expected: readonly Total[], got: readonly Total[]): string | undefined => {
  const groupOf = ({ period_id, currency }: Total): string => `${period_id} in ${currency}`
  const [wanted, found] = [expected, got].map(totals => new Map(totals.map(total => [groupOf(total), total])))
  for (const group of new Set([...(wanted?.keys() ?? []), ...(found?.keys() ?? [])])) {
    for (const field of fields) {
      const [theirs, ours] = [wanted?.get(group)?.[field] ?? 0, found?.get(group)?.[field] ?? 0]
      if (!new Exact(theirs).eq(ours)) return `${group}: ${field} is ${theirs}, in the copy ${ours}`
    }
  }
  return undefined
}

/** Adds up all periods, by currency. */
export const controlTotalsOf = (totals: readonly Total[]): ControlTotal[] => {
  const sums = new Map<string, { owed: Decimal; paid: Decimal }>()
  for (const { currency, owed_amount, paid_amount } of totals) {
    const { owed, paid } = sums.get(currency) ?? { owed: new Exact(0), paid: new Exact(0) }
    sums.set(currency, { owed: owed.plus(owed_amount), paid: paid.plus(paid_amount) })
  }
  return [...sums].map(([currency, { owed, paid }]) => {
    return { currency, owed: owed.toFixed(), paid: paid.toFixed(), open: owed.minus(paid).toFixed() }
  })
}

/** Returns the first sum that differs, in words; undefined if none does. */
export const differenceOfSums = (
  expected: readonly ControlTotal[],
  got: readonly ControlTotal[],
): string | undefined => {
  for (const currency of new Set([...expected, ...got].map(sums => sums.currency))) {
    const [theirs, ours] = [expected, got].map(all => all.find(sums => sums.currency === currency))
    for (const field of ['owed', 'paid', 'open'] as const) {
      const [signed, own] = [theirs?.[field] ?? '0', ours?.[field] ?? '0']
      if (!new Exact(signed).eq(own)) return `${field} in ${currency} is ${signed}, in the copy ${own}`
    }
  }
  return undefined
}
