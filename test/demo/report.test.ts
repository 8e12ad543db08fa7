import { expect, test } from 'vitest'
import type { Case } from '../../demo/check/verify.ts'
import { linesOf, tableOf } from '../../demo/report.ts'
import { percentile } from '../../demo/run/latency-probe.ts'

test('amounts are shown whole, in groups, with at least two decimals', () => {
  const payouts = [
    { id: 'payout_1', currency: 'EUR', net_amount: '12345678901234567890123.1' },
    { id: 'payout_2', currency: 'USD', net_amount: '-1234.56789' },
  ]
  const expected = { reps: [], periods: [], payouts, payroll_files: [], superseded: [], statements: new Map() }
  const cases = [{ organization: { name: 'Acme', id: 'org_1', sent: [] }, expected }] as unknown as Case[]
  const figures = {
    published: 11_555,
    publishSeconds: 1,
    searchableSeconds: 1,
    counts: { applied: 1, duplicate: 2, parked: 3 },
    read: 1,
    readSeconds: 1,
    latencies: [10, 20],
  }
  const table = tableOf({ figures, cases, differences: [] }).join('\n')
  expect(table).toContain('EUR 12,345,678,901,234,567,890,123.10   USD -1,234.56789')
  expect(table).toMatch(/records published +11,555 in 1\.0 s/)
  expect(table).toMatch(/left through payroll +nothing/)
  expect(table).toContain('p50 10 ms, p99 20 ms')
})

test('every difference is named, and very many are counted', () => {
  const one = { what: 'Acme, owed in EUR', expected: '1.50', got: '1.51' }
  expect(linesOf([one])[1]).toBe('  Acme, owed in EUR: expected 1.50, got 1.51')
  expect(linesOf(Array.from({ length: 130 }, () => one)).at(-1)).toBe('  … and 30 more')
  expect(linesOf([])).toHaveLength(1)
})

test('percentiles are values that were measured', () => {
  const values = Array.from({ length: 100 }, (_, index) => 100 - index)
  expect([percentile(values, 50), percentile(values, 99), percentile(values, 100)]).toEqual([50, 99, 100])
})
