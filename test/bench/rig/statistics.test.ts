import { expect, test } from 'vitest'
import { slopeOf } from '../../../bench/rig/statistics.ts'

test('the rate of amounts that grow in steps is that of the whole, wherever the samples begin and end', () => {
  const rateOf = (from: number): number =>
    slopeOf(Array.from({ length: 75 }, (_, at) => [from + at / 5, 500 * Math.floor(2 * (from + at / 5))] as const))
  for (const from of [0, 0.2, 0.4]) expect(rateOf(from)).toBeCloseTo(1_000, -2)
})

test('of a straight line, the rate is its slope', () => {
  expect(
    slopeOf([
      [1, 10],
      [2, 13],
      [4, 19],
    ]),
  ).toBeCloseTo(3)
})
