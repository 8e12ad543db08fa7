/** Publishes one event of each type with types that json-schema-to-typescript made from contract/events. */
import { randomUUID } from 'node:crypto'
import kafkajs from 'kafkajs'
import type { CommissionApiKeyCreatedV1 } from './models/commission.api_key.created.v1.js'
import type { CommissionApiKeyRevokedV1 } from './models/commission.api_key.revoked.v1.js'
import type { CommissionPayoutCalculatedV1, LineItem, TraceStep } from './models/commission.payout.calculated.v1.js'
import type { CommissionPayoutRecordedV1 } from './models/commission.payout.recorded.v1.js'
import type { CommissionPayrollRecordedV1 } from './models/commission.payroll.recorded.v1.js'
import type { CommissionPayrollVoidedV1 } from './models/commission.payroll.voided.v1.js'
import type { CommissionPeriodRecordedV1 } from './models/commission.period.recorded.v1.js'
import type { CommissionRepRecordedV1 } from './models/commission.rep.recorded.v1.js'

const { KAFKA_BROKERS = '', TOPIC = '', KEYS_TOPIC = '', ORG: org_id = '' } = process.env

// An amount of any type would take a number.
// @ts-expect-error
export const refused: Pick<LineItem, 'amount'> = { amount: 1234.6 }

type Data = {
  'commission.rep.recorded.v1': CommissionRepRecordedV1
  'commission.period.recorded.v1': CommissionPeriodRecordedV1
  'commission.payout.calculated.v1': CommissionPayoutCalculatedV1
  'commission.payout.recorded.v1': CommissionPayoutRecordedV1
  'commission.payroll.recorded.v1': CommissionPayrollRecordedV1
  'commission.payroll.voided.v1': CommissionPayrollVoidedV1
  'commission.api_key.created.v1': CommissionApiKeyCreatedV1
  'commission.api_key.revoked.v1': CommissionApiKeyRevokedV1
}

const lines: LineItem[] = [
  { id: 'line_1', category: 'earned', description: 'Renewal', amount: '1234.6000', deal_id: 'deal_4' },
  { id: 'line_2', category: 'recovered', description: 'Advance', amount: '-200.00', deal_id: null },
]
const steps: TraceStep[] = [
  {
    step: 1,
    name: 'Rate',
    strategy: 'tiered_rate',
    strategy_version: '2026-01',
    inputs: { booked: '15432.50', rate: '0.08' },
    output_amount: '1234.60000000000000000001',
    deal_id: 'deal_4',
  },
  {
    step: 2,
    name: 'Advance',
    strategy: 'recover',
    strategy_version: '3',
    inputs: {},
    output_amount: '-200.00',
    deal_id: null,
  },
]
const events: Data = {
  'commission.rep.recorded.v1': {
    org_id,
    id: 'rep_1',
    name: 'Zoë 😀',
    email: null,
    status: 'active',
    started_on: '2024-02-29',
    departed_on: null,
  },
  'commission.period.recorded.v1': {
    org_id,
    id: 'period_1',
    kind: 'month',
    name: 'January 2026',
    timezone: 'Europe/Berlin',
    starts_at: '2026-01-01T00:00:00+01:00',
    ends_at: '2026-02-01T00:00:00+01:00',
  },
  'commission.payout.calculated.v1': {
    org_id,
    id: 'payout_1',
    rep_id: 'rep_1',
    period_id: 'period_1',
    supersedes_id: null,
    currency: 'EUR',
    net_amount: '1034.6000',
    earned_amount: '1234.6000',
    line_items: lines,
    calculation_trace: steps,
    calculated_at: '2026-02-02T07:15:04.250Z',
  },
  'commission.payout.recorded.v1': {
    org_id,
    id: 'payout_2',
    rep_id: 'rep_1',
    period_id: 'period_1',
    supersedes_id: 'payout_1',
    currency: 'EUR',
    net_amount: '9007199254740993.10',
    earned_amount: '0',
    line_items: [{ id: 'line_1', category: 'adjusted', description: '', amount: '9007199254740993.10', deal_id: null }],
    recorded_at: '2026-02-03T08:00:00Z',
  },
  'commission.payroll.recorded.v1': {
    org_id,
    id: 'payroll_1',
    rep_id: 'rep_1',
    period_id: 'period_1',
    payout_id: 'payout_2',
    amount: '9007199254740993.10',
    currency: 'EUR',
    destination: { type: 'bank_account', label: 'Account 7' },
    recorded_at: '2026-02-05T08:30:00Z',
  },
  'commission.payroll.voided.v1': {
    org_id,
    id: 'payroll_2',
    reverses_id: 'payroll_1',
    amount: '-9007199254740993.10',
    currency: 'EUR',
    recorded_at: '2026-02-06T08:30:00Z',
  },
  'commission.api_key.created.v1': {
    org_id,
    id: 'key_1',
    name: 'Payroll',
    secret_sha256: '0f'.repeat(32),
    last4: 'a_-Z',
    permissions: ['payouts:read', 'changes:read'],
    created_at: '2026-01-01T00:00:00Z',
  },
  'commission.api_key.revoked.v1': { org_id, id: 'key_1', revoked_at: '2026-03-01T00:00:00Z' },
}

const kafka = new kafkajs.Kafka({ brokers: KAFKA_BROKERS.split(','), logLevel: kafkajs.logLevel.NOTHING })
const createPartitioner = kafkajs.Partitioners.DefaultPartitioner
const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1, createPartitioner })
await producer.connect()
for (const [type, data] of Object.entries(events)) {
  const headers = { ce_specversion: '1.0', ce_id: randomUUID(), ce_source: '/models', ce_type: type }
  const topic = type.includes('.api_key.') ? KEYS_TOPIC : TOPIC
  await producer.send({ topic, messages: [{ key: org_id, headers, value: JSON.stringify(data) }] })
}
await producer.disconnect()
console.log(Object.keys(events).length)
