/** Exact sums of amounts, as strings with as many decimal places as the input with most: 15.00, not 15. */
import { Exact } from '../../schemas/money.ts'
import { moneyPattern } from '../../schemas/values.ts'

const moneyForm = new RegExp(moneyPattern)

/** Whether a value is the text of an amount. A stored one that was damaged may be anything. */
export const isAmount = (value: unknown): value is string => typeof value === 'string' && moneyForm.test(value)

export const total = (amounts: Iterable<string>): string => {
  let sum = new Exact(0)
  let digits = 0
  for (const amount of amounts) {
    sum = sum.plus(amount)
    digits = Math.max(digits, scaleOf(amount))
  }
  return sum.toFixed(digits)
}

/** b minus a. */
export const subtract = (a: string, b: string): string =>
  new Exact(b).minus(a).toFixed(Math.max(scaleOf(a), scaleOf(b)))

/** Compares values: 1.0 is 1.00. */
export const isSameAmount = (a: string, b: string): boolean => new Exact(a).eq(b)

const scaleOf = (amount: string): number => {
  const point = amount.indexOf('.')
  return point === -1 ? 0 : amount.length - point - 1
}
