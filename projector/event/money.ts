/** Exact sums of amounts. Text in, text compared; nothing is ever rounded or written back. */
import { Exact } from '../../schemas/money.ts'

/** Whether the amounts add up to the total exactly. All have passed the money grammar. */
export const addUpTo = (amounts: readonly string[], total: string): boolean =>
  addUpToAsIntegers(amounts, total) ?? addUpToAsDecimals(amounts, total)

/**
 * Amounts of as many digits after the point as the total, without it: almost all there are. Exact as long as every
 * number on the way is one that a double holds exactly; otherwise undefined. A tenth of the time of decimals.
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
