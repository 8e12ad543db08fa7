/** Exact sums of amounts. Text in, text compared; nothing is ever rounded or written back. */
import { Decimal } from 'decimal.js'
import { MONEY_PRECISION } from '../schemas/limits.ts'

const Exact = Decimal.clone({ precision: MONEY_PRECISION, toExpNeg: -9e15, toExpPos: 9e15 })

/** Whether the amounts add up to the total exactly. All have passed the money grammar. */
export const addUpTo = (amounts: readonly string[], total: string): boolean => {
  let sum = new Exact(0)
  for (const amount of amounts) sum = sum.plus(amount)
  return sum.eq(total)
}
