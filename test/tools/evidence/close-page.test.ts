/** The page of a close: the reconciliation first, all texts escaped, lists that are cut say so. */
import { expect, test } from 'vitest'
import { closePage } from '../../../tools/evidence/close-page.ts'
import { PAGE_ROWS } from '../../../tools/limits.ts'

const head = {
  format: 'commission-close-1',
  organization: 'org_1',
  period: 'period_1',
  as_of: 'payout_2',
  published_at: '2026-02-01T00:00:00Z',
  position: { topic: 'events', partition: 0, offset: 7 },
  rules_version: 4,
  key_rules_version: 2,
  keys_position: { topic: 'keys', offset: 3 },
  parked_positions: [],
  control_totals: [],
} as const
const replacement = {
  rep_id: 'rep_1',
  payout_id: 'payout_2',
  replaces_id: 'payout_1',
  currency: 'EUR',
  before: '1',
  after: '1234.5',
  difference: '1233.5',
}
const content = {
  head,
  periodName: '<script>alert(1)</script>',
  reconciled: [
    { currency: 'EUR', compared: 'owed', from_changes: '9', from_records: '9', from_lines: '9', from_totals: '9' },
  ],
  replacements: [replacement],
  parked: [],
  keys: [],
  reads: undefined,
  files: {},
  digest: 'd',
}

test('the reconciliation stands before all lists, and no text of a publisher is markup', () => {
  const page = closePage(content)
  expect(page).not.toContain('<script')
  expect(page.indexOf('<h2>Reconciliation</h2>')).toBeLessThan(page.indexOf('<h2>Replaced payouts</h2>'))
  expect(page).toContain('+1,233.5')
  expect(page).toContain("default-src 'none'")
  expect(page).not.toContain('<h2>Who read</h2>')
  expect(closePage(content)).toBe(page)
})

test('a list that is cut says how many rows are left out', () => {
  const replacements = Array.from({ length: PAGE_ROWS + 3 }, () => replacement)
  expect(closePage({ ...content, replacements })).toContain('Left out of this page: 3 rows')
})
