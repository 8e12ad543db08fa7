import { expect, test } from 'vitest'
import { stepOf } from '../../tools/analysis/payout-changes.ts'
import { firstDifference } from '../../tools/documents/find-differences.ts'
import { aligned } from '../../tools/terminal.ts'

const payout = {
  id: 'payout_1',
  rep_id: 'rep_1',
  period_id: 'period_1',
  net_amount: '1',
  earned_amount: '1',
  currency: 'EUR',
  calculated_at: null,
  recorded_at: null,
  supersedes_id: null,
  superseded_by_id: null,
  line_items: [],
}

test('a trace with a new strategy version at each step is explained in less than 2 s of CPU', () => {
  const trace = Array.from({ length: 76_000 }, (_, step) => ({ strategy: 's', strategy_version: `${step}` }))
  const began = process.threadCpuUsage()
  const { strategies } = stepOf(undefined, { payout, traceRecorded: true, trace, seq: 0, at: 0 })
  expect(strategies[0]?.versions).toHaveLength(76_000)
  const { user, system } = process.threadCpuUsage(began)
  expect(user + system).toBeLessThan(2_000_000)
})

test('a table takes 300,000 rows', () => {
  expect(aligned(Array.from({ length: 300_000 }, (_, row) => [`${row}`])).split('\n')).toHaveLength(300_000)
})

test('an inherited property name counts as a field only if the publisher wrote it', () => {
  for (const name of ['__proto__', 'constructor', 'toString']) {
    const a = JSON.parse(`{"${name}":"x"}`)
    expect(firstDifference(a, {}, '')).toEqual({ field: name, a: 'x', b: undefined })
  }
})
