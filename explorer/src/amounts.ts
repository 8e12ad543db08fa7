/**
 * Amounts are decimal texts. Texts are grouped and aligned, and a decimal type adds them. No amount becomes a number,
 * except for the length of a drawn bar (`drawnShare`).
 */
import { Decimal } from 'decimal.js'

/** Adds exactly: an amount has at most 40 digits before the point and 40 after it, and a sum some more. */
const Exact = Decimal.clone({ precision: 200, toExpPos: 200, toExpNeg: -200 })
/** Divides for pictures: a length needs no more digits, and 200 of them take longer than the rest of a picture. */
const Drawn = Decimal.clone({ precision: 17 })

/** U+2212: as wide as a plus sign, and a screen reader says it. */
const MINUS = '\u2212'

/** Groups the digits before the point by three. All digits stay: `-1234567.5000` becomes `−1,234,567.5000`. */
export const groupDigits = (amount: string): string => {
  const point = amount.indexOf('.')
  const whole = point === -1 ? amount : amount.slice(0, point)
  return `${whole.replace(/\B(?=(?:\d{3})+$)/g, ',').replace('-', MINUS)}${amount.slice(whole.length)}`
}

/** Shown texts as other programs read them: with the minus sign of a keyboard before digits. */
export const withPlainMinus = (shown: string): string => shown.replace(/\u2212(?=\d)/g, '-')

/** The same, and a plus sign before an amount above zero. */
export const groupSigned = (amount: string): string =>
  `${isNegative(amount) || isZero(amount) ? '' : '+'}${groupDigits(amount)}`

/** The point and the digits after it; empty for a whole number. */
const fractionOf = (amount: string): string => /\.\d+$/.exec(amount)?.[0] ?? ''

const longestFraction = (amounts: readonly string[]): number =>
  amounts.reduce((longest, amount) => Math.max(longest, fractionOf(amount).length), 0)

/** The text that an amount lacks behind its end to stand with its decimal point below those of others: `.00`, `0`. */
export const paddingFor = (amount: string, others: readonly string[]): string => {
  const fraction = fractionOf(amount)
  const missing = longestFraction(others) - fraction.length
  if (missing <= 0) return ''
  return fraction === '' ? `.${'0'.repeat(missing - 1)}` : '0'.repeat(missing)
}

/** The amount whose text is longest after its point, alone: others align with it as with all of them. */
export const widestOf = (amounts: readonly string[]): string[] => {
  const longest = longestFraction(amounts)
  return amounts.filter(amount => fractionOf(amount).length === longest).slice(0, 1)
}

/** Sums have no trailing zeros. Gives them as many decimals as the longest has, and two if any has decimals. */
export const withEqualDecimals = (sums: readonly string[]): string[] => {
  const longest = longestFraction(sums)
  const decimals = longest === 0 ? [] : [`.${'0'.repeat(Math.max(2, longest - 1))}`]
  return sums.map(sum => `${sum}${paddingFor(sum, decimals)}`)
}

export const isZero = (amount: string): boolean => /^-?0+(?:\.0+)?$/.test(amount)
export const isNegative = (amount: string): boolean => amount.startsWith('-')

/** The exact sum, without trailing zeros. */
export const addAmounts = (amounts: readonly string[]): string =>
  amounts.reduce((sum, amount) => sum.plus(amount), new Exact(0)).toFixed()

/** `from` less `amount`, exactly, without trailing zeros. */
export const subtractAmount = (from: string, amount: string): string => new Exact(from).minus(amount).toFixed()

/** The sums after each amount, from the first one on. */
export const runningSums = (amounts: readonly string[]): string[] => {
  let sum = new Exact(0)
  return amounts.map(amount => {
    sum = sum.plus(amount)
    return sum.toFixed()
  })
}

/** The amount that is farthest from zero; `0` for none. */
export const farthestFromZero = (amounts: readonly string[]): string =>
  amounts.reduce((farthest, amount) => (new Exact(amount).abs().gt(new Exact(farthest).abs()) ? amount : farthest), '0')

/** Whether the first amount is larger. */
export const isAbove = (one: string, other: string): boolean => new Exact(one).gt(other)

/**
 * The only number that is made of an amount: a length in a picture, as a share of the length that stands for `whole`.
 * No text is made of it.
 */
export const drawnShare = (amount: string, whole: string): number =>
  isZero(whole) ? 0 : new Drawn(amount).div(new Drawn(whole).abs()).toNumber()

/** Where amounts stand between the lowest of them and the highest, from 0 to 1: the positions of a picture. */
export const drawnPositions = (amounts: readonly string[]): number[] => {
  const farthest = farthestFromZero(amounts)
  const shares = amounts.map(amount => drawnShare(amount, farthest))
  const low = shares.reduce((lowest, share) => Math.min(lowest, share), 0)
  const high = shares.reduce((highest, share) => Math.max(highest, share), 0)
  return shares.map(share => (share - low) / (high - low || 1))
}
