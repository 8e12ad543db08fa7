import { expect, test } from 'vitest'
import { compareRatios } from '../../../bench/report/compare.ts'
import type { Figure, FigureName, FigureRow } from '../../../bench/rig/bench.ts'

const figure = (rows: readonly FigureRow[], name: FigureName = 'replay'): Figure => ({
  name,
  title: '',
  rows,
  notes: [],
})
const more = (value: number): FigureRow => ({ what: 'more is better', unit: '', value, isRatio: true, atLeast: 0.85 })
const less = (value: number): FigureRow => ({ what: 'less is better', unit: '', value, isRatio: true, atMost: 1.3 })

test.each([
  [more(0.8), more(0.69), 13.75, false],
  [more(0.8), more(0.67), 16.25, true],
  [more(0.8), more(1.6), -100, false],
  [less(1), less(1.14), 14, false],
  [less(1), less(1.16), 16, true],
  [less(1), less(0.5), -50, false],
  [more(0.8), more(Number.NaN), Number.NaN, true],
  [less(1), less(Number.POSITIVE_INFINITY), Number.POSITIVE_INFINITY, true],
])('%j, then %j', (before, now, worse, isTooMuch) => {
  const [compared] = compareRatios([figure([before])], [figure([now])])
  if (Number.isFinite(worse)) expect(compared?.worsePercent).toBeCloseTo(worse)
  else expect(compared?.worsePercent).toBe(worse)
  expect(compared?.isTooMuch).toBe(isTooMuch)
})

test('a time, a rate and a ratio without a bound are not compared', () => {
  const rows: FigureRow[] = [
    { what: 'time', unit: 'ms', value: 1, atMost: 40 },
    { what: 'ratio', unit: '', value: 1, isRatio: true },
  ]
  expect(compareRatios([figure(rows)], [figure(rows.map(row => ({ ...row, value: 100 })))])).toEqual([])
})

test('a figure without a new measurement is left out', () => {
  expect(compareRatios([figure([more(1)]), figure([more(1)], 'growth')], [figure([more(1)])])).toHaveLength(1)
})

test('a ratio without a new measurement is reported, and is not a failure', () => {
  expect(compareRatios([figure([more(1), less(1)])], [figure([more(1)])])).toContainEqual({
    key: 'replay: less is better',
    before: 1,
    now: undefined,
    worsePercent: undefined,
    isTooMuch: false,
  })
})

test('a ratio is found by its key even if its label has changed', () => {
  const [before, now] = [0.8, 0.4].map((value): FigureRow => ({ ...more(value), key: 'stable', what: `at ${value}` }))
  expect(compareRatios([figure(before ? [before] : [])], [figure(now ? [now] : [])])).toMatchObject([
    { key: 'replay: stable', isTooMuch: true },
  ])
})

test('two ratios with the same key are refused: one of them would be ignored', () => {
  expect(() => compareRatios([figure([more(1)]), figure([more(2)])], [figure([more(1)])])).toThrow('more is better')
})
