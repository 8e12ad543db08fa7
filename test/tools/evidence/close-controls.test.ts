/** The controls of a close: three ways to count, and an error that names the first that differs. */
import { expect, test } from 'vitest'
import {
  type ChangeToCount,
  createControls,
  type PayoutToCount,
  type PayrollToCount,
} from '../../../tools/evidence/close-controls.ts'

const payout = (id: string, net_amount: string, more: Partial<PayoutToCount> = {}): PayoutToCount => ({
  id,
  rep_id: 'rep_1',
  currency: 'EUR',
  net_amount,
  supersedes_id: null,
  line_items: [{ amount: net_amount }],
  ...more,
})
const payroll = (id: string, amount: string, reverses_id: string | null = null): PayrollToCount => ({
  id,
  currency: 'EUR',
  amount,
  reverses_id,
})
const total = {
  period_id: 'period_1',
  currency: 'EUR',
  owed_amount: '0.3',
  owed_count: 1,
  paid_amount: '0.2',
  paid_count: 3,
  open_amount: '0.1',
}

/** A payout of 0.1 that was replaced by one of 0.3; 0.7 was paid, taken back, and then 0.2. */
const before = payout('payout_1', '0.1')
const after = payout('payout_2', '0.3', {
  supersedes_id: 'payout_1',
  line_items: [{ amount: '0.1' }, { amount: '0.2' }],
})
const records = [payroll('payroll_1', '0.7'), payroll('payroll_2', '-0.7', 'payroll_1'), payroll('payroll_3', '0.2')]
type Given = {
  changes?: readonly PayoutToCount[]
  payouts?: readonly PayoutToCount[]
  paid?: readonly PayrollToCount[]
}

const reconcile = ({ changes = [before, after], payouts = [after], paid = records }: Given, rows = [total]) => {
  const controls = createControls()
  const feed: ChangeToCount[] = [
    ...changes.map(record => ({ kind: 'payouts', record }) as const),
    ...records.map(record => ({ kind: 'payroll_files', record }) as const),
  ]
  const replaced = feed.flatMap(change => controls.addChange(change) ?? [])
  for (const one of payouts) controls.addPayout(one)
  for (const one of paid) controls.addPayroll(one)
  return { ...controls.reconcile(rows), replaced }
}

test('amounts that a binary number cannot hold reconcile exactly', () => {
  const { totals, replaced, reconciled } = reconcile({})
  expect(totals).toMatchObject([
    { first_amount: '0.1', replaced_amount: '0.2', owed_amount: '0.3', open_amount: '0.1' },
  ])
  expect(replaced).toMatchObject([{ payout_id: 'payout_2', replaces_id: 'payout_1', difference: '0.2' }])
  expect(reconciled.map(({ compared, from_totals }) => [compared, from_totals])).toEqual([
    ['owed', '0.3'],
    ['current payouts', '1'],
    ['paid', '0.2'],
    ['payroll records', '3'],
    ['open', '0.1'],
  ])
})

test.each<[what: string, given: Given, row: Partial<typeof total>, said: string]>([
  ['the least digit of a total', {}, { owed_amount: '0.30000000001' }, 'owed in EUR'],
  ['the number of payouts', {}, { owed_count: 2 }, 'current payouts in EUR'],
  ['the paid total', {}, { paid_amount: '0.9' }, 'paid in EUR'],
  ['the number of payroll records', {}, { paid_count: 2 }, 'payroll records in EUR'],
  ['the open total', {}, { open_amount: '0' }, 'open in EUR'],
  ['a payout that is missing', { payouts: [] }, {}, 'owed in EUR'],
  ['a replaced payout that is listed too', { payouts: [before, after] }, {}, 'owed in EUR'],
  ['lines of another sum', { payouts: [{ ...after, line_items: [{ amount: '0.1' }] }] }, {}, '0.1 in the lines'],
  ['a void that is missing', { paid: records.filter(({ reverses_id }) => reverses_id === null) }, {}, 'paid in EUR'],
  ['a change that is missing', { changes: [before] }, {}, '0.1 in the changes, 0.3 in the records'],
])('%s ends the close', (_, given, row, said) => {
  expect(() => reconcile(given, [{ ...total, ...row }])).toThrow(said)
})

test('a currency that only the totals have, and a payout that replaces an unknown one, end the close', () => {
  expect(() => reconcile({}, [total, { ...total, currency: 'USD' }])).toThrow('owed in USD')
  expect(() => reconcile({ changes: [after] })).toThrow('payout_2 replaces payout_1, which is no current payout')
  expect(() => reconcile({ changes: [before, after, payout('payout_3', '1', { supersedes_id: 'payout_1' })] })).toThrow(
    'payout_3 replaces payout_1',
  )
})

test('a payout that was replaced in another currency leaves one and comes to the other', () => {
  const dollars = payout('payout_3', '5', { currency: 'USD', supersedes_id: 'payout_2' })
  const gone = { ...total, owed_amount: '0', owed_count: 0, open_amount: '-0.2' }
  const come = { ...total, currency: 'USD', owed_amount: '5', paid_amount: '0', paid_count: 0, open_amount: '5' }
  const { totals, replaced } = reconcile({ changes: [before, after, dollars], payouts: [dollars] }, [gone, come])
  expect(totals).toMatchObject([
    { currency: 'EUR', replaced_amount: '-0.1', owed_count: 0, replacements: 1 },
    { currency: 'USD', replaced_amount: '5', owed_count: 1, replacements: 1 },
  ])
  expect(replaced[1]?.difference).toBeNull()
})
