/** Decimals that hold every amount, and every sum and difference of amounts, exactly. */
import { Decimal } from 'decimal.js'
import { MONEY_PRECISION } from './limits.ts'

export const Exact = Decimal.clone({ precision: MONEY_PRECISION, toExpNeg: -9e15, toExpPos: 9e15 })
export type Exact = Decimal

/** Formats a sum like an amount: digits only, no negative zero. */
export const textOfSum = (sum: Exact): string => (sum.isZero() ? '0' : sum.toFixed())

/** Sums by currency. */
export type Sums = Map<string, Exact>

export const addTo = (sums: Sums, currency: string, amount: string): void => {
  sums.set(currency, (sums.get(currency) ?? new Exact(0)).plus(amount))
}

/** Ordered by currency, so that equal sums are equal texts. */
export const textOfSums = (sums: Sums): Record<string, string> =>
  Object.fromEntries(
    [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([currency, sum]) => [currency, textOfSum(sum)]),
  )

/** Returns `after` minus `before`. */
export const differenceOf = (before: string, after: string): string => textOfSum(new Exact(after).minus(before))

/** Groups the digits before the point by three. All digits stay: `-1234567.5000` becomes `-1,234,567.5000`. */
export const inGroups = (amount: string): string => {
  const [whole = '', ...fraction] = amount.split('.')
  return [whole.replace(/\B(?=(?:\d{3})+$)/g, ','), ...fraction].join('.')
}
