/** Example records of the API and the events that they are made from: one organization, used by both documents. */
import type { EventType } from '../events.ts'
import type { ResourceName, Totals } from '../resources.ts'

const line_items = [
  {
    id: 'line_7Qm2',
    category: 'earned',
    description: 'Northwind renewal, 8 % of 15,432.50',
    amount: '1234.6000',
    deal_id: 'deal_4Kd9',
  },
  {
    id: 'line_7Qm3',
    category: 'recovered',
    description: 'Advance of December',
    amount: '-200.00',
    deal_id: null,
  },
]

const calculation_trace = [
  {
    step: 1,
    name: 'Rate of the deal',
    strategy: 'tiered_rate',
    strategy_version: '2026-01',
    inputs: { booked: '15432.50', rate: '0.08' },
    output_amount: '1234.60000000',
    deal_id: 'deal_4Kd9',
  },
  {
    step: 2,
    name: 'Recovery of the advance',
    strategy: 'recover_advance',
    strategy_version: '3',
    inputs: { open: '200.00' },
    output_amount: '-200.00',
    deal_id: null,
  },
]

const payout = {
  id: 'payout_9Zk4',
  rep_id: 'rep_2Hb7',
  period_id: 'period_5Tn1',
  net_amount: '1034.6000',
  earned_amount: '1034.6000',
  currency: 'EUR',
  supersedes_id: 'payout_9Zk1',
  calculated_at: '2026-02-02T07:15:04.250Z',
  recorded_at: null,
  line_items,
  superseded_by_id: null,
}

export const recordExamples = {
  Rep: {
    id: 'rep_2Hb7',
    name: 'Márta Szőke',
    email: 'marta@example.com',
    status: 'departed',
    started_on: '2021-09-01',
    departed_on: '2026-01-31',
  },
  Period: {
    id: 'period_5Tn1',
    kind: 'month',
    name: 'January 2026',
    timezone: 'Europe/Berlin',
    starts_at: '2026-01-01T00:00:00+01:00',
    ends_at: '2026-02-01T00:00:00+01:00',
  },
  Payout: payout,
  PayoutStep: {
    ...payout,
    difference: {
      net_amount: '-200',
      earned_amount: '-200',
      line_items_added: [line_items[1]],
      line_items_removed: [],
      line_items_changed: [],
    },
  },
  Change: {
    id: 'payout_9Zk4',
    kind: 'payouts',
    sequence: 31,
    published_at: '2026-02-02T07:15:05.031Z',
    supersedes_id: 'payout_9Zk1',
    reverses_id: null,
    record: payout,
  },
  Totals: {
    last_change_id: 'payroll_3Wc8',
    last_sequence: 32,
    totals: [
      {
        period_id: 'period_5Tn1',
        currency: 'EUR',
        owed_amount: '1034.6',
        owed_count: 1,
        paid_amount: '1034.6',
        paid_count: 1,
        open_amount: '0',
      },
    ],
  },
  Checkpoint: {
    note: [
      'commission checkpoint 1',
      'organization org_6Ga3',
      'line rules-7',
      'sequence 32',
      'change payroll_3Wc8',
      'digest 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae',
      'total EUR owed 1034.6 paid 1034.6 open 0',
      'time 2026-02-05T12:00:04.120Z',
      '',
      '\u2014 commission.example.com/checkpoints Zm9vYmFyNDJ0aGlzIGlzIG5vdCBhIHNpZ25hdHVyZSBhdCBhbGwsIGJ1dCA2OCBieXRlcyBhcyBvbmUgaGFzLg==',
      '',
    ].join('\n'),
  },
  Statement: { ...payout, calculation_trace_recorded: true, calculation_trace },
  PayrollRecord: {
    id: 'payroll_3Wc8',
    rep_id: 'rep_2Hb7',
    period_id: 'period_5Tn1',
    payout_id: 'payout_9Zk4',
    reverses_id: null,
    amount: '1034.6000',
    currency: 'EUR',
    destination: { type: 'bank_account', label: 'Account ending 4410' },
    recorded_at: '2026-02-05T12:00:00Z',
  },
} as const satisfies Record<ResourceName, object>

const org_id = 'org_6Ga3'
const { superseded_by_id: _, recorded_at: __, calculated_at, ...payoutData } = payout
const { reverses_id: ___, ...paymentData } = recordExamples.PayrollRecord

export const eventSummaries: Record<EventType, string> = {
  'commission.rep.recorded.v1': 'The whole rep. A later one replaces it; a departed rep stays.',
  'commission.period.recorded.v1': 'The whole period. A later one replaces it and may change its name only.',
  'commission.payout.calculated.v1': 'A payout with the trace of its calculation. The lines add up to net_amount.',
  'commission.payout.recorded.v1': 'A payout that was recorded, not calculated.',
  'commission.payroll.recorded.v1': 'Money that has left through payroll.',
  'commission.payroll.voided.v1': 'Reverses a payroll record: its amount with the opposite sign.',
  'commission.api_key.created.v1': 'An API key. Its text is never published, only the SHA-256 of it.',
  'commission.api_key.revoked.v1': 'The key is no longer valid.',
}

export const eventExamples = {
  'commission.rep.recorded.v1': { org_id, ...recordExamples.Rep },
  'commission.period.recorded.v1': { org_id, ...recordExamples.Period },
  'commission.payout.calculated.v1': { org_id, ...payoutData, calculation_trace, calculated_at },
  'commission.payout.recorded.v1': {
    org_id,
    ...payoutData,
    id: 'payout_9Zk0',
    supersedes_id: null,
    recorded_at: '2026-01-31T18:00:00Z',
  },
  'commission.payroll.recorded.v1': { org_id, ...paymentData },
  'commission.payroll.voided.v1': {
    org_id,
    id: 'payroll_3Wc9',
    reverses_id: 'payroll_3Wc8',
    amount: '-1034.6000',
    currency: 'EUR',
    recorded_at: '2026-02-06T09:30:00Z',
  },
  'commission.api_key.created.v1': {
    org_id,
    id: 'key_8Lr5',
    name: 'Payroll export',
    secret_sha256: '3fd0a1c4e2b5968778695a4b3c2d1e0f00112233445566778899aabbccddeeff',
    last4: 'xK9q',
    permissions: ['read'],
    created_at: '2026-01-10T10:00:00Z',
  },
  'commission.api_key.revoked.v1': { org_id, id: 'key_8Lr5', revoked_at: '2026-03-01T10:00:00Z' },
} as const

/** Totals of a deal: an amount of it was taken back. */
export const dealTotalsExample = {
  last_change_id: 'payroll_3Wc8',
  last_sequence: 32,
  totals: [],
  line_totals: [
    { period_id: 'period_5Tn1', currency: 'EUR', category: 'earned', amount: '1234.6', line_count: 1 },
    { period_id: 'period_5Tn1', currency: 'EUR', category: 'recovered', amount: '-20.5', line_count: 1 },
  ],
} as const satisfies Totals
