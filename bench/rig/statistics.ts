/** Statistics of measurements. */

/** `value` is the median. */
export type Spread = { readonly value: number; readonly lowest: number; readonly highest: number }

/** Returns median, lowest and highest of at least one value. */
export const spreadOf = (values: readonly number[]): Spread => ({
  value: percentile(values, 50),
  lowest: Math.min(...values),
  highest: Math.max(...values),
})

/**
 * The smallest value that at least `percent` of the values do not exceed. For 50 and an even number of values: the mean
 * of the middle two.
 */
export const percentile = (values: readonly number[], percent: number): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const rank = (percent / 100) * sorted.length
  const nth = (n: number): number => sorted[Math.min(Math.max(n, 1), sorted.length) - 1] ?? Number.NaN
  return percent === 50 && Number.isInteger(rank) ? (nth(rank) + nth(rank + 1)) / 2 : nth(Math.ceil(rank))
}

/** Whether two measurements differ by at most `percent` of the larger one. */
export const agree = (a: number, b: number, percent: number): boolean =>
  Math.abs(a - b) <= (percent / 100) * Math.max(a, b)

/** The slope of the straight line nearest to points: of amounts at times, the rate. */
export const slopeOf = (points: readonly (readonly [x: number, y: number])[]): number => {
  const mean = (of: (point: readonly [number, number]) => number): number =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length
  const [x, y] = [mean(([at]) => at), mean(([, amount]) => amount)]
  return mean(([at, amount]) => (at - x) * (amount - y)) / mean(([at]) => (at - x) ** 2)
}
