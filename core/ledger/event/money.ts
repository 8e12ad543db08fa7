/** Exact sums of amounts, which are decimal strings. Never rounds and never writes an amount. */
import { Exact } from '../../../schemas/money.ts'

/** Whether the amounts add up to the total exactly. Amounts and total must match the money grammar. */
export const addUpTo = (amounts: readonly string[], total: string): boolean =>
  addUpToAsIntegers(amounts, total) ?? addUpToAsDecimals(amounts, total)

/**
 * The fast path, in a tenth of the time of decimals: adds amounts without their decimal point. Returns undefined if an
 * amount has another number of fraction digits than the total, or if a number is not a safe integer.
 */
const addUpToAsIntegers = (amounts: readonly string[], total: string): boolean | undefined => {
  const digits = digitsAfterPoint(total)
  let sum = 0
  for (const amount of amounts) {
    if (digitsAfterPoint(amount) !== digits) return undefined
    const whole = withoutPoint(amount)
    sum += whole
    if (!Number.isSafeInteger(whole) || !Number.isSafeInteger(sum)) return undefined
  }
  const wanted = withoutPoint(total)
  return Number.isSafeInteger(wanted) ? sum === wanted : undefined
}

const digitsAfterPoint = (amount: string): number => {
  const point = amount.indexOf('.')
  return point === -1 ? 0 : amount.length - point - 1
}

const withoutPoint = (amount: string): number => Number(amount.replace('.', ''))

const addUpToAsDecimals = (amounts: readonly string[], total: string): boolean => {
  let sum = new Exact(0)
  for (const amount of amounts) sum = sum.plus(amount)
  return sum.eq(total)
}
