import { expect, test } from 'vitest'
import type { Case } from '../../demo/check/verify.ts'
import { caseTable, differenceLines } from '../../demo/report.ts'
import { percentileOf } from '../../demo/run/latency-probe.ts'

test('amounts are shown with all digits, in groups, with at least two decimals', () => {
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
  const table = caseTable({ figures, cases, differences: [] }).join('\n')
  expect(table).toContain('EUR 12,345,678,901,234,567,890,123.10   USD -1,234.56789')
  expect(table).toMatch(/records published +11,555 in 1\.0 s/)
  expect(table).toMatch(/left through payroll +nothing/)
  expect(table).toContain('p50 10 ms, p99 20 ms')
})

test('every difference is listed, and beyond 100 they are counted', () => {
  const one = { what: 'Acme, owed in EUR', expected: '1.50', got: '1.51' }
  expect(differenceLines([one])[1]).toBe('  Acme, owed in EUR: expected 1.50, got 1.51')
  expect(differenceLines(Array.from({ length: 130 }, () => one)).at(-1)).toBe('  … and 30 more')
  expect(differenceLines([])).toHaveLength(1)
})

test('percentiles are measured values', () => {
  const values = Array.from({ length: 100 }, (_, index) => 100 - index)
  expect([percentileOf(values, 50), percentileOf(values, 99), percentileOf(values, 100)]).toEqual([50, 99, 100])
})
