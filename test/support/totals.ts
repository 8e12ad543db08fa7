/** Sums of records, computed with integers of the smallest unit: independent of the product's library. */
import type { Item } from './model.ts'

const PLACES = 40
const units = (amount: string): bigint => {
  const [whole = '', fraction = ''] = amount.replace('-', '').split('.')
  const digits = BigInt(whole + fraction.padEnd(PLACES, '0'))
  return amount.startsWith('-') ? -digits : digits
}
/** Returns the exact amount without trailing zeros. */
const amountOf = (sum: bigint): string => {
  const digits = String(sum < 0n ? -sum : sum).padStart(PLACES + 1, '0')
  const fraction = digits.slice(-PLACES).replace(/0+$/, '')
  return `${sum < 0n ? '-' : ''}${digits.slice(0, -PLACES)}${fraction && `.${fraction}`}`
}
export const differenceOfAmounts = (before: unknown, after: unknown): string =>
  amountOf(units(String(after)) - units(String(before)))

const sumOf = (amounts: readonly unknown[]): string =>
  amountOf(amounts.reduce((sum: bigint, of) => sum + units(String(of)), 0n))

/** The rows of totals. */
export const totalsOf = (payouts: readonly Item[], payroll: readonly Item[]) =>
  balanceRowsOf(payouts, payroll).map(row => ({
    ...row,
    open_amount: differenceOfAmounts(row.paid_amount, row.owed_amount),
  }))

/** The rows of a balance: what is open is not stored. */
export const balanceRowsOf = (payouts: readonly Item[], payroll: readonly Item[]) => {
  const groupOf = ({ period_id, currency }: Item): string => `${period_id} ${currency}`
  return [...new Set([...payouts, ...payroll].map(groupOf))].toSorted().map(group => {
    const [owed, paid] = [payouts, payroll].map(items => items.filter(item => groupOf(item) === group))
    const [period_id = '', currency = ''] = group.split(' ')
    return {
      period_id,
      currency,
      owed_amount: sumOf(owed?.map(({ net_amount }) => net_amount) ?? []),
      owed_count: owed?.length,
      paid_amount: sumOf(paid?.map(({ amount }) => amount) ?? []),
      paid_count: paid?.length,
    }
  })
}

type LineOfPayout = { category: string; amount: string; deal_id: string | null }
/** The sums of the lines of a deal. */
export const lineTotalsOf = (payouts: readonly Item[], deal: string) => {
  const lines = payouts.flatMap(({ period_id, currency, line_items }) =>
    (line_items as LineOfPayout[])
      .filter(({ deal_id }) => deal_id === deal)
      .map(({ category, amount }) => ({ group: `${period_id} ${currency} ${category}`, amount })),
  )
  return [...new Set(lines.map(({ group }) => group))].toSorted().map(group => {
    const [period_id, currency, category] = group.split(' ')
    const amounts = lines.filter(line => line.group === group).map(({ amount }) => amount)
    return { period_id, currency, category, amount: sumOf(amounts), line_count: amounts.length }
  })
}

type Records = { readonly payouts: readonly Item[]; readonly payroll_files: readonly Item[] }
/** The rows of totals of all reps or one, or the sums of the lines of a deal. */
export const totalsAt = ({ payouts, payroll_files }: Records, rep: string | undefined, deal: string | undefined) => {
  const [owed, paid] = [payouts, payroll_files].map(items => items.filter(({ rep_id }) => (rep ?? rep_id) === rep_id))
  return deal === undefined ? totalsOf(owed ?? [], paid ?? []) : lineTotalsOf(owed ?? [], deal)
}
