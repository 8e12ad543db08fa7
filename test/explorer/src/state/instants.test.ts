import { expect, test } from 'vitest'
import type { Period } from '../../../../client/src/index.ts'
import { instantText, latestPeriodFirst, momentBefore } from '../../../../explorer/src/state/instants.ts'

test('an instant is easier to read, and the id of a change stays as it is', () => {
  expect(instantText('2026-02-01T08:30:00Z')).toBe('2026-02-01 08:30:00 UTC')
  expect(instantText('2026-02-01T08:30:00+01:00')).toBe('2026-02-01 08:30:00 +01:00')
  for (const id of ['payout_qT6AKIwNZ', 'rep_T1.12']) expect(instantText(id)).toBe(id)
})

const periods = new Map(
  [
    { id: 'january', starts_at: '2026-01-01T00:00:00Z' },
    // Earlier than January, though its text is later.
    { id: 'eastern', starts_at: '2026-01-01T01:00:00+05:00' },
    { id: 'march', starts_at: '2026-03-01T00:00:00Z' },
  ].map(period => [period.id, period as Period]),
)
const of = (...ids: readonly string[]) => ids.map((period_id, at) => ({ period_id, at }))

test('records stand with the latest period first, and those of one period in their order', () => {
  const ordered = latestPeriodFirst(of('eastern', 'january', 'march', 'january'), periods)
  expect(ordered?.map(({ at }) => at)).toEqual([2, 1, 3, 0])
})

test('records have no order by period if a period is not known', () => {
  expect(latestPeriodFirst(of('january', 'unread', 'march'), periods)).toBeUndefined()
  expect(latestPeriodFirst(of('january'), new Map())).toBeUndefined()
  expect(latestPeriodFirst([], new Map())).toEqual([])
})

test('the moment before an instant is a millisecond earlier', () => {
  const befores = [
    ['2026-02-01T00:00:00Z', '2026-01-31T23:59:59.999Z'],
    ['2026-02-01T00:00:00.500Z', '2026-02-01T00:00:00.499Z'],
    ['2026-02-01T00:00:00.5000Z', '2026-02-01T00:00:00.499Z'],
    ['2026-02-01T00:30:00+01:00', '2026-01-31T23:29:59.999Z'],
  ] as const
  for (const [since, before] of befores) expect(momentBefore(since)).toBe(before)
})

test('a part of a millisecond, a change and a date that no calendar has stay as they are', () => {
  const others = [
    '2026-02-01T00:00:00.0005Z',
    'payout_qT6AKIwNZ',
    'rep_T1.12',
    '2026-02-30T00:00:00Z',
    '2026-13-01T00:00Z',
  ]
  for (const since of others) expect(momentBefore(since)).toBe(since)
})
