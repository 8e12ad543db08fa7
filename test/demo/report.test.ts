import { expect, test } from 'vitest'
import type { Case } from '../../demo/check/verify.ts'
import { differenceLines, figureTable, suggestionsOf } from '../../demo/report.ts'
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
  const table = figureTable({ figures, cases, differences: [] }).join('\n')
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

test('the printed lines have a link to the explorer, and set the addresses and the names that the documents use', () => {
  const installation = {
    base: 'http://api/v1',
    apiAdmin: 'http://api-admin',
    projectorAdmin: 'http://projector-admin',
    folder: '/tmp/logs',
    settings: "KAFKA_BROKERS='k'",
    explorer: 'http://explorer',
    died: new Promise<Error>(() => undefined),
  }
  const line_items = [{ deal_id: null }, { deal_id: 'deal_1' }]
  const replaced = { id: 'payout_1', rep_id: 'rep_1', period_id: 'period_1', line_items }
  const expected = {
    reps: [],
    periods: [],
    payouts: [],
    payroll_files: [],
    superseded: [replaced],
    statements: new Map(),
  }
  const organization = { name: 'Acme', id: 'org_1', sent: [], keys: { reading: { text: 'ck_1' } } }
  const cases = [{ organization, expected }] as unknown as Case[]
  const suggestions = suggestionsOf(installation, { cases })
  expect(suggestions).toContain('  http://explorer/#key=ck_1')
  const line = suggestions.find(text => text.startsWith('  export API='))
  const variables = Object.fromEntries(
    Array.from(line?.matchAll(/(\w+)='([^']*)'/g) ?? [], ([, name, value]) => [name, value]),
  )
  expect(variables).toEqual({
    API: 'http://api/v1',
    KEY: 'ck_1',
    ORG: 'org_1',
    PAYOUT: 'payout_1',
    REP: 'rep_1',
    PERIOD: 'period_1',
    DEAL: 'deal_1',
    ADMIN: 'http://projector-admin',
  })
})
