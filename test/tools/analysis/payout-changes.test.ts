import { expect, test } from 'vitest'
import { explanationText } from '../../../tools/analysis/explanation.ts'
import { balancesOf, type ChainPayout, stepOf } from '../../../tools/analysis/payout-changes.ts'
import type { LineContent } from '../../../tools/documents/comparable-content.ts'

const line = (id: string, category: string, amount: string): LineContent => ({
  id,
  category,
  description: 'Commission',
  amount,
  deal_id: null,
})
const payout = (
  id: string,
  net_amount: string,
  line_items: LineContent[],
  trace: [strategy: string, version: string][],
  more: Partial<ChainPayout['payout']> = {},
): ChainPayout => ({
  payout: {
    id,
    rep_id: 'rep_1',
    period_id: 'period_1',
    supersedes_id: null,
    superseded_by_id: null,
    currency: 'EUR',
    net_amount,
    earned_amount: net_amount,
    calculated_at: '2026-02-01T08:30:00Z',
    recorded_at: null,
    line_items,
    ...more,
  },
  traceRecorded: more.calculated_at !== null,
  trace: trace.map(([strategy, strategy_version]) => ({ strategy, strategy_version })),
  seq: 7,
  at: 1_000,
})
const first = payout(
  'payout_1',
  '100.00',
  [line('line_1', 'earned', '90.00'), line('line_2', 'adjusted', '10.00')],
  [
    ['flat', '1'],
    ['flat', '2'],
    ['cap', '1'],
    ['floor', '1'],
  ],
)
const second = payout(
  'payout_2',
  '85.5',
  [line('line_1', 'earned', '90.50'), line('line_3', 'recovered', '-5.00')],
  [
    ['flat', '3'],
    ['floor', '1'],
    ['tier', '1'],
  ],
  { supersedes_id: 'payout_1' },
)

test('the first payout of a chain has no differences', () => {
  expect(stepOf(undefined, first)).toMatchObject({
    event: 'commission.payout.calculated.v1',
    net_difference: null,
    earned_difference: null,
    categories: [
      { category: 'earned', total: '90.00', difference: null },
      { category: 'adjusted', total: '10.00', difference: null },
    ],
    trace_steps: 4,
  })
})

test('a recalculation is shown exactly: by amounts, categories, lines and strategies', () => {
  const step = stepOf(first, second)
  expect(step).toMatchObject({
    replaces: 'payout_1',
    net_difference: '-14.50',
    categories: [
      { category: 'earned', total: '90.50', difference: '0.50' },
      { category: 'recovered', total: '-5.00', difference: '-5.00' },
      { category: 'adjusted', total: '0', difference: '-10.00' },
    ],
    strategies: [
      { strategy: 'flat', change: 'changed', versions_before: ['1', '2'], versions: ['3'] },
      { strategy: 'tier', change: 'appears', versions_before: [], versions: ['1'] },
      { strategy: 'cap', change: 'vanishes', versions_before: ['1'], versions: [] },
    ],
  })
  expect(step.lines.map(({ change, id, difference }) => [change, id, difference])).toEqual([
    ['changed', 'line_1', '0.50'],
    ['added', 'line_3', '-5.00'],
    ['removed', 'line_2', '-10.00'],
  ])
})

test('amounts in different currencies are not compared, and a recorded payout has no trace', () => {
  const dollars = payout('payout_3', '1', [line('line_1', 'earned', '1')], [], {
    currency: 'USD',
    calculated_at: null,
    recorded_at: '2026-02-02T00:00:00Z',
  })
  expect(stepOf(second, dollars)).toMatchObject({
    event: 'commission.payout.recorded.v1',
    said_at: '2026-02-02T00:00:00Z',
    net_difference: null,
    categories: [{ category: 'earned', total: '1', difference: null }],
    trace_recorded: false,
  })
})

test('the amount still owed is the amount owed minus all payments, by currency', () => {
  const paid = (amount: string, currency = 'EUR') => ({ amount, currency })
  expect(balancesOf(second.payout, [paid('100.00'), paid('-100.00'), paid('80'), paid('3', 'USD')])).toEqual([
    { currency: 'EUR', owed: '85.5', paid: '80.00', still_owed: '5.50' },
    { currency: 'USD', owed: '0', paid: '3', still_owed: '-3' },
  ])
  expect(balancesOf(undefined, [paid('3')])).toEqual([{ currency: 'EUR', owed: '0', paid: '3', still_owed: '-3' }])
})

test('the text for people shows every step', () => {
  const placed = ({ offset, at, ...step }: ReturnType<typeof stepOf>) => ({
    ...step,
    at: new Date(at).toISOString(),
    position: `t:0:${offset}`,
  })
  const replaced = { ...first, payout: { ...first.payout, superseded_by_id: 'payout_2' } }
  const payment = {
    id: 'payroll_1',
    payout_id: 'payout_1',
    reverses_id: null,
    amount: '100.00',
    currency: 'EUR',
    destination: { type: 'bank_account', label: 'DE00\u001b' },
    recorded_at: '2026-02-05T08:30:00Z',
    at: '1970-01-01T00:00:02.000Z',
    position: 't:0:8',
  }
  const text = explanationText({
    generation: 'g1',
    organization: 'org_1',
    rep: 'rep_1',
    period: 'period_1',
    payout: 'payout_1',
    as_of: 't:0:9',
    current: 'payout_2',
    steps: [placed(stepOf(undefined, replaced)), placed(stepOf(first, second))],
    payroll: [payment],
    balances: balancesOf(second.payout, [payment]),
  })
  expect(text).toBe(`payout_1 of rep_1 for period_1, org_1: replaced; current is payout_2
2 payouts and 1 payroll record in g1, as of t:0:9

1. payout_1, the one asked for
   calculated 2026-02-01T08:30:00Z
   commission.payout.calculated.v1 at t:0:7, 1970-01-01T00:00:01.000Z
   net 100.00 EUR, earned 100.00 EUR
   by category: earned 90.00, adjusted 10.00
   lines
     +  line_1  earned    90.00  +90.00  EUR  Commission
     +  line_2  adjusted  10.00  +10.00  EUR  Commission
   strategies, of 4 steps of the trace
     +  flat   1, 2
     +  cap    1
     +  floor  1

2. payout_2
   calculated 2026-02-01T08:30:00Z, replaces payout_1
   commission.payout.calculated.v1 at t:0:7, 1970-01-01T00:00:01.000Z
   net 85.5 EUR (-14.50), earned 85.5 EUR (-14.50)
   by category: earned 90.50 (+0.50), recovered -5.00 (-5.00), adjusted 0 (-10.00)
   lines
     ~  line_1  earned     90.00 → 90.50   +0.50  EUR  Commission
     +  line_3  recovered  -5.00           -5.00  EUR  Commission
     -  line_2  adjusted   10.00          -10.00  EUR  Commission
   strategies, of 3 steps of the trace
     ~  flat  1, 2 → 3
     +  tier  1
     -  cap   1

payroll records
   payroll_1  payment  100.00  EUR  for payout_1, replaced by payout_2  to bank_account DE00\\u001b  2026-02-05T08:30:00Z, at t:0:8, 1970-01-01T00:00:02.000Z

EUR: 85.5 owed, 100.00 paid, 14.50 paid too much
`)
})
