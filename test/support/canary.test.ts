import { expect, test } from 'vitest'
import { contentIn } from './canary.ts'

test.each([
  ['{"route":"/api/v1/payouts/:id","key_id":"key_1","because":"elasticsearch_timeout"}', []],
  ['{"code":"payout_mismatch","path":"/api/v1/payroll_files","ms":1.25}', []],
  ['{"url":"/api/v1/payouts/payout_7"}', ['id: payout_7']],
  ['payout:org_a:rep_b:period_c', ['id: org_a', 'id: rep_b', 'id: period_c']],
  ['{"header":"bearer x"}', ['key: bearer']],
  ['"ck_0123456789abc"', ['key: ck_0123456789abc']],
  ['Authorization%20ck_0123456789abc\\nck_0123456789abd', ['key: ck_0123456789abc', 'key: ck_0123456789abd']],
  ['{"cluster":"Ck_tI-0123456789abcdef","topic":"xyck_0123456789abcdefg"}', []],
  ['{"net_amount":"-12.50"}', ['amount: "-12.50"', 'field: net_amount']],
  ['{"message":"x {\\"net_amount\\":\\"12.50\\"}"}', ['amount: \\"12.50\\"', 'field: net_amount']],
  ['{"path":"payouts%2Forg_1"}', ['id: org_1']],
  ['GET /api/v1/payouts?limit=3', ['address: /api/v1/payouts?']],
  ['{"email":"a@example.com"}', ['name: @example']],
] as const)('finds the forbidden content of the log %s: %j', (log, expected) =>
  expect(contentIn(log)).toEqual(expected),
)
