import { describe, expect, test } from 'vitest'
import type { DemoRecord } from '../../../demo/data/demo-record.ts'
import { expectedOf, expectedParked, sumByCurrency } from '../../../demo/data/expected.ts'
import { toMessage } from '../../../demo/data/publish.ts'

const org_id = 'org_1'
let serial = 0
const sent = (type: string, data: object, outcome: DemoRecord['outcome'] = 'applied'): DemoRecord => ({
  stream: 'events',
  message: toMessage({
    id: `e${++serial}`,
    type: `commission.${type}.v1`,
    time: '2026-01-01T00:00:00Z',
    data: { org_id, ...data },
  }),
  outcome,
})
const pair = { rep_id: 'rep_1', period_id: 'period_1' }
const payout = (id: string, supersedes_id: string | null, net_amount: string) => {
  const amounts = { currency: 'EUR', net_amount, earned_amount: net_amount, line_items: [] }
  return { id, ...pair, supersedes_id, ...amounts }
}
const calculated = (id: string, supersedes_id: string | null, net_amount: string) =>
  sent('payout.calculated', { ...payout(id, supersedes_id, net_amount), calculation_trace: [], calculated_at: 't' })
const paid = {
  id: 'payroll_1',
  ...pair,
  payout_id: null,
  amount: '5',
  currency: 'EUR',
  destination: {},
  recorded_at: 'a',
}

describe('what the API must return', () => {
  test('a superseded payout is on no list, and names its later replacement', () => {
    const { payouts, superseded } = expectedOf(org_id, [
      calculated('payout_1', null, '1.50'),
      calculated('payout_2', null, '2'),
      calculated('payout_3', 'payout_1', '3'),
    ])
    expect(payouts.map(({ id }) => id)).toEqual(['payout_2', 'payout_3'])
    expect(superseded).toMatchObject([{ id: 'payout_1', superseded_by_id: 'payout_3', net_amount: '1.50' }])
  })

  test('a rep that is recorded again keeps its place', () => {
    const { reps } = expectedOf(org_id, [
      sent('rep.recorded', { id: 'rep_1', name: 'A' }),
      sent('rep.recorded', { id: 'rep_2', name: 'B' }),
      sent('rep.recorded', { id: 'rep_1', name: 'C' }),
    ])
    expect(reps).toEqual([
      { id: 'rep_1', name: 'C' },
      { id: 'rep_2', name: 'B' },
    ])
  })

  test('a void has the rep, period, payout and destination of the record it reverses', () => {
    const voided = { id: 'payroll_2', reverses_id: 'payroll_1', amount: '-5', currency: 'EUR', recorded_at: 'b' }
    const { payroll_files } = expectedOf(org_id, [sent('payroll.recorded', paid), sent('payroll.voided', voided)])
    expect(payroll_files).toEqual([
      { ...paid, reverses_id: null },
      { ...paid, ...voided },
    ])
  })

  test('a recorded payout has no trace, and says so', () => {
    const { statements } = expectedOf(org_id, [
      sent('payout.recorded', { ...payout('payout_1', null, '1200'), recorded_at: 'r' }),
    ])
    expect(statements.get('payout_1')).toMatchObject({
      calculation_trace_recorded: false,
      calculation_trace: [],
      recorded_at: 'r',
      calculated_at: null,
    })
  })

  test('duplicates, parked records and records of another organization change nothing', () => {
    const parked = sent('rep.recorded', { id: 'rep_3' }, 'data_invalid')
    const rest = [
      parked,
      sent('rep.recorded', { id: 'rep_1', name: 'A' }, 'duplicate'),
      sent('rep.recorded', { org_id: 'org_2', id: 'rep_9' }),
    ]
    expect(expectedOf(org_id, rest).reps).toEqual([])
    expect(expectedParked(rest)).toEqual([
      {
        event_id: parked.message.headers?.ce_id,
        code: 'data_invalid',
        value: Buffer.from(String(parked.message.value)).toString('base64'),
      },
    ])
  })
})

test('amounts are summed exactly, by currency', () => {
  const amounts = [
    ['EUR', '9999999999999999999999999999999999999999.01'],
    ['EUR', '0.001'],
    ['USD', '-1'],
  ]
  expect(
    sumByCurrency(
      amounts.map(([currency, amount]) => ({ id: '', currency, amount })),
      'amount',
    ),
  ).toEqual(
    new Map([
      ['EUR', '9999999999999999999999999999999999999999.011'],
      ['USD', '-1'],
    ]),
  )
})
