/** Builders of events with defaults, one per type. Each returns a record in CloudEvents binary mode. */
import { createHash, randomBytes } from 'node:crypto'
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

/** A record to publish. Without `partition` its key decides the partition. */
export type Outgoing = {
  readonly stream: Stream
  readonly key: Buffer | string | null
  readonly headers: Readonly<Record<string, Header>>
  readonly value: Buffer | string | null
  readonly partition?: number
  /** Milliseconds. Counts on topics with times of publishers; by default the time of sending. */
  readonly timestamp?: number | string
}
type Header = string | Buffer | (string | Buffer)[]

/** Returns an id that no other test uses: `org_…`, `rep_…`. */
export const newId = (prefix: string): string => `${prefix}_${randomBytes(8).toString('hex')}`

type Given<Data extends { org_id: string }> = Partial<Data> & Pick<Data, 'org_id'>

export const repRecorded = (data: Given<RepData>): Outgoing =>
  event('commission.rep.recorded.v1', {
    id: 'rep_1',
    name: 'Ada',
    email: null,
    status: 'active',
    started_on: '2024-02-29',
    departed_on: null,
    ...data,
  } satisfies RepData)

export const periodRecorded = (data: Given<PeriodData>): Outgoing =>
  event('commission.period.recorded.v1', {
    id: 'period_1',
    kind: 'month',
    name: 'January 2026',
    timezone: 'Europe/Berlin',
    starts_at: '2026-01-01T00:00:00+01:00',
    ends_at: '2026-02-01T00:00:00+01:00',
    ...data,
  } satisfies PeriodData)

export const line = (data: Partial<LineItem> = {}): LineItem => ({
  id: 'line_1',
  category: 'earned',
  description: 'Commission',
  amount: '100.00',
  deal_id: null,
  ...data,
})

export const step = (data: Partial<TraceStep> = {}): TraceStep => ({
  step: 1,
  name: 'Base',
  strategy: 'flat-rate',
  strategy_version: '1',
  inputs: { rate: '0.10', base: '1000.00' },
  output_amount: '100.00',
  deal_id: null,
  ...data,
})

/** By default one line over the whole amount. */
const payout = <Data extends Given<Omit<PayoutRecordedData, 'recorded_at'>>>({
  net_amount = '100.00',
  ...data
}: Data) => ({
  id: 'payout_1',
  rep_id: 'rep_1',
  period_id: 'period_1',
  supersedes_id: null,
  currency: 'EUR',
  net_amount,
  earned_amount: net_amount,
  line_items: [line({ amount: net_amount })],
  ...data,
})

export const payoutCalculated = (data: Given<PayoutCalculatedData>): Outgoing =>
  event('commission.payout.calculated.v1', {
    calculation_trace: [step({ output_amount: data.net_amount ?? '100.00' })],
    calculated_at: '2026-02-01T08:30:00Z',
    ...payout(data),
  } satisfies PayoutCalculatedData)

export const payoutRecorded = (data: Given<PayoutRecordedData>): Outgoing =>
  event('commission.payout.recorded.v1', {
    recorded_at: '2026-02-01T08:30:00Z',
    ...payout(data),
  } satisfies PayoutRecordedData)

export const payrollRecorded = (data: Given<PayrollRecordedData>): Outgoing =>
  event('commission.payroll.recorded.v1', {
    id: 'payroll_1',
    rep_id: 'rep_1',
    period_id: 'period_1',
    payout_id: null,
    amount: '100.00',
    currency: 'EUR',
    destination: { type: 'bank_account', label: 'DE00 0000' },
    recorded_at: '2026-02-05T08:30:00Z',
    ...data,
  } satisfies PayrollRecordedData)

export const payrollVoided = (data: Given<PayrollVoidedData>): Outgoing =>
  event('commission.payroll.voided.v1', {
    id: 'payroll_2',
    reverses_id: 'payroll_1',
    amount: '-100.00',
    currency: 'EUR',
    recorded_at: '2026-02-06T08:30:00Z',
    ...data,
  } satisfies PayrollVoidedData)

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Returns the text of an API key. Only its hash is ever published. */
export const newKeyText = (): string => `ck_${randomBytes(24).toString('base64url')}`

export const keyCreated = ({ text = newKeyText(), ...data }: Given<ApiKeyCreatedData> & { text?: string }): Outgoing =>
  event('commission.api_key.created.v1', {
    id: 'key_1',
    name: 'Test',
    secret_sha256: sha256(text),
    last4: text.slice(-4),
    permissions: ['read'],
    created_at: '2026-01-01T00:00:00Z',
    ...data,
  } satisfies ApiKeyCreatedData)

export const keyRevoked = (data: Given<ApiKeyRevokedData>): Outgoing =>
  event('commission.api_key.revoked.v1', {
    id: 'key_1',
    revoked_at: '2026-03-01T00:00:00Z',
    ...data,
  } satisfies ApiKeyRevokedData)

const event = (type: EventType, data: { org_id: string }): Outgoing => ({
  stream: type.startsWith('commission.api_key.') ? 'api-keys' : 'events',
  key: data.org_id,
  headers: envelope(type),
  value: JSON.stringify(data),
})

export const envelope = (type: string): Record<string, string> => ({
  ce_specversion: '1.0',
  ce_id: randomBytes(8).toString('hex'),
  ce_type: type,
  ce_source: '/test',
  'content-type': 'application/json',
})

export const dataOf = ({ value }: Outgoing): Record<string, unknown> => JSON.parse(String(value))

/** Returns the record with changed or added fields in its data; undefined removes a field. */
export const withData = (record: Outgoing, changes: Record<string, unknown>): Outgoing => ({
  ...record,
  value: JSON.stringify({ ...dataOf(record), ...changes }),
})

/** Returns the record with changed or added headers; undefined removes a header. */
export const withHeaders = (record: Outgoing, changes: Record<string, Header | undefined>): Outgoing => {
  const all = Object.entries({ ...record.headers, ...changes })
  return {
    ...record,
    headers: Object.fromEntries(all.filter((entry): entry is [string, Header] => entry[1] !== undefined)),
  }
}
