import { expect, test } from 'vitest'
import { figureOfChains, figureOfGrowth, type Stage } from '../../../bench/figures/growth-figure.ts'
import { quickRun } from '../../../bench/rig/sizes.ts'

const page = { beginning: 2, middle: 2, end: 3, ofRep: 1, asMany: 1 }
const stage = (growth: Stage['growth']): Stage => ({
  payouts: 1_000,
  growth,
  peakMebibytes: 300,
  diskBytes: 4_000_000,
  walk: { pages: 5, seconds: 1, rounds: [page, page] },
  seen: [10, 20, 30],
  restartSeconds: [1, 2, 3],
})
const figureValue = (stages: readonly Stage[], what: string): number | undefined =>
  figureOfGrowth(quickRun.growth, stages).rows.find(row => row.key === what || row.what === what)?.value

test('the last part is compared with the first, at interpolated times between two samples', () => {
  const looks = [
    { payouts: -50, seconds: 1, mebibytes: 100 },
    { payouts: 50, seconds: 3, mebibytes: 200 },
    { payouts: 150, seconds: 4, mebibytes: 210 },
    { payouts: 850, seconds: 11, mebibytes: 220 },
    { payouts: 1_000, seconds: 14, mebibytes: 220 },
  ]
  // From 0 at 2 s to 100 at 3.5 s; from 900 at 12 s to 1,000 at 14 s.
  expect(figureValue([stage(looks)], 'replay, first 100')).toBeCloseTo(100 / 1.5)
  expect(figureValue([stage(looks)], 'replay, last 100 of 1,000')).toBeCloseTo(100 / 2)
  expect(figureValue([stage(looks)], 'last part / first part')).toBeCloseTo(0.75)
  expect(figureValue([stage(looks)], 'memory at the end / after the first part')).toBeCloseTo(220 / 210)
  expect(figureValue([stage(looks)], 'page at the end / at the beginning')).toBe(1.5)
})

test('unknown memory has no rows', () => {
  const looks = [0, 100, 900, 1_000].map(payouts => ({ payouts, seconds: payouts, mebibytes: undefined }))
  expect(figureValue([stage(looks)], 'last part / first part')).toBeCloseTo(1)
  expect(figureValue([stage(looks)], 'peak memory of the projector')).toBeUndefined()
})

test('longer chains are compared with the shortest, round by round', () => {
  const chains = [
    { length: 1, seconds: [1, 2] },
    { length: 10, seconds: [2, 2] },
  ]
  const { rows } = figureOfChains(quickRun.growth.chains.data, chains)
  expect(rows.at(-1)).toMatchObject({ what: 'chains of 10 / of 1', value: 0.75, lowest: 0.5, highest: 1 })
})
