import { expect, test } from 'vitest'
import { createDataset, type DatasetSize } from '../../../bench/rig/dataset.ts'

const size: DatasetSize = { payouts: 600, organizations: 3, recalculated: 0.1, lines: 6, steps: 8 }

const payoutsOf = (given: DatasetSize) =>
  [...createDataset(given).payouts()].flatMap(event =>
    event.type === 'commission.payout.calculated.v1' ? [event.data] : [],
  )

/** The number of payouts of each pair of rep and period. */
const chainsOf = (given: DatasetSize): number[] => {
  const chains = Map.groupBy(payoutsOf(given), ({ org_id, rep_id, period_id }) => `${org_id} ${rep_id} ${period_id}`)
  return [...chains.values()].map(({ length }) => length)
}

test('the same size gives the same events', () => {
  expect(payoutsOf(size)).toEqual(payoutsOf(size))
})

test('a payout has the given lines and steps, and about one in ten replaces another', () => {
  const payouts = payoutsOf(size)
  expect(payouts).toHaveLength(600)
  expect(
    new Set(payouts.map(({ line_items, calculation_trace }) => `${line_items.length} ${calculation_trace?.length}`)),
  ).toEqual(new Set(['6 8']))
  const replacing = payouts.filter(({ supersedes_id }) => supersedes_id !== null)
  expect(replacing.length).toBeGreaterThan(30)
  expect(replacing.length).toBeLessThan(100)
})

test('the first organization has the given share', () => {
  const payouts = payoutsOf({ ...size, firstShare: 0.5 })
  const [first] = createDataset({ ...size, firstShare: 0.5 }).organizations
  expect(payouts.filter(({ org_id }) => org_id === first?.id)).toHaveLength(300)
})

test.each([1, 10, 100])('chains of %i have that length, and each payout replaces the last one of its chain', length => {
  const given = { ...size, recalculated: 0, chainLength: length }
  expect(new Set(chainsOf(given))).toEqual(new Set([length]))

  const current = new Map<string, string>()
  for (const { org_id, rep_id, period_id, id, supersedes_id } of payoutsOf(given)) {
    const pair = `${org_id} ${rep_id} ${period_id}`
    expect(supersedes_id).toBe(current.get(pair) ?? null)
    current.set(pair, id)
  }
})
