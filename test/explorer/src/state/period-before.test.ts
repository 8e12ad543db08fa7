import { expect, test } from 'vitest'
import type { Payout, Period } from '../../../../client/src/index.ts'
import { payoutBefore } from '../../../../explorer/src/state/period-before.ts'

const period = (id: string, kind: Period['kind'], starts_at: string) => [id, { id, kind, starts_at } as Period] as const
const payout = (id: string, period_id: string) => ({ id, period_id }) as Payout

const periods = new Map([
  period('q1', 'quarter', '2026-01-01T00:00:00Z'),
  period('march', 'month', '2026-03-01T00:00:00Z'),
  // The same instant as the first of February, 01:00 in UTC: later than January in texts and in time.
  period('february', 'month', '2026-02-01T01:00:00+01:00'),
  period('january', 'month', '2026-01-01T00:00:00Z'),
])

const idsBefore = (all: readonly Payout[]) =>
  all.map(one => {
    const before = payoutBefore(one, all, periods)
    return before === 'unknown' ? before : before?.id
  })

test('the payout before is that of the latest earlier period of the same kind', () => {
  const all = [payout('a', 'q1'), payout('b', 'january'), payout('c', 'february'), payout('d', 'march')]
  expect(idsBefore(all)).toEqual([undefined, undefined, 'b', 'c'])
})

test('a month without a payout is passed over', () => {
  const all = [payout('b', 'january'), payout('d', 'march')]
  expect(idsBefore(all)).toEqual([undefined, 'b'])
})

test('with a period that is not known, the payout before is not known: that period may be the one between', () => {
  const all = [payout('b', 'january'), payout('d', 'march'), payout('e', 'not read')]
  expect(idsBefore(all)).toEqual(['unknown', 'unknown', 'unknown'])
})
