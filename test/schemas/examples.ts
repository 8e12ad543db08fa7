/** A valid example of the data of every event type. Tests change copies of it. */
import type {
  ApiKeyCreatedData,
  ApiKeyRevokedData,
  EventType,
  LineItem,
  PayoutCalculatedData,
  PayoutRecordedData,
  PayrollRecordedData,
  PayrollVoidedData,
  PeriodData,
  RepData,
  Stream,
  TraceStep,
} from '../../schemas/events.ts'

export const rep: RepData = {
  org_id: 'org_1',
  id: 'rep_1',
  name: 'Ada Lovelace',
  email: 'ada@example.com',
  status: 'active',
  started_on: '2024-02-29',
  departed_on: null,
}

export const period: PeriodData = {
  org_id: 'org_1',
  id: 'period_1',
  kind: 'month',
  name: 'January 2026',
  timezone: 'Europe/Berlin',
  starts_at: '2026-01-01T00:00:00+01:00',
  ends_at: '2026-02-01T00:00:00+01:00',
}

export const line: LineItem = {
  id: 'line_1',
  category: 'earned',
  description: 'Deal closed',
  amount: '100.00',
  deal_id: 'deal_1',
}

export const step: TraceStep = {
  step: 1,
  name: 'Base rate',
  strategy: 'percentage',
  strategy_version: '3',
  inputs: { amount: '1000.00', rate: '0.1' },
  output_amount: '100.00',
  deal_id: 'deal_1',
}

const payout = {
  org_id: 'org_1',
  id: 'payout_1',
  rep_id: 'rep_1',
  period_id: 'period_1',
  supersedes_id: null,
  currency: 'EUR',
  net_amount: '100.00',
  earned_amount: '100.00',
  line_items: [line],
}

export const calculated: PayoutCalculatedData = {
  ...payout,
  calculation_trace: [step],
  calculated_at: '2026-02-01T08:30:00Z',
}

export const recorded: PayoutRecordedData = { ...payout, recorded_at: '2026-02-01T08:30:00Z' }

export const payment: PayrollRecordedData = {
  org_id: 'org_1',
  id: 'payroll_1',
  rep_id: 'rep_1',
  period_id: 'period_1',
  payout_id: 'payout_1',
  amount: '100.00',
  currency: 'EUR',
  destination: { type: 'bank_account', label: 'DE89 … 3000' },
  recorded_at: '2026-02-05T00:00:00Z',
}

export const voided: PayrollVoidedData = {
  org_id: 'org_1',
  id: 'payroll_2',
  reverses_id: 'payroll_1',
  amount: '-100.00',
  currency: 'EUR',
  recorded_at: '2026-02-06T00:00:00Z',
}

export const keyCreated: ApiKeyCreatedData = {
  org_id: 'org_1',
  id: 'key_1',
  name: 'Payroll export',
  secret_sha256: 'a'.repeat(64),
  last4: 'x_-9',
  permissions: ['read'],
  created_at: '2026-01-01T00:00:00Z',
}

export const keyRevoked: ApiKeyRevokedData = { org_id: 'org_1', id: 'key_1', revoked_at: '2026-01-02T00:00:00Z' }

type Example = { readonly stream: Stream; readonly type: EventType; readonly data: Readonly<Record<string, unknown>> }

export const examples: readonly Example[] = [
  { stream: 'events', type: 'commission.rep.recorded.v1', data: rep },
  { stream: 'events', type: 'commission.period.recorded.v1', data: period },
  { stream: 'events', type: 'commission.payout.calculated.v1', data: calculated },
  { stream: 'events', type: 'commission.payout.recorded.v1', data: recorded },
  { stream: 'events', type: 'commission.payroll.recorded.v1', data: payment },
  { stream: 'events', type: 'commission.payroll.voided.v1', data: voided },
  { stream: 'api-keys', type: 'commission.api_key.created.v1', data: keyCreated },
  { stream: 'api-keys', type: 'commission.api_key.revoked.v1', data: keyRevoked },
]
