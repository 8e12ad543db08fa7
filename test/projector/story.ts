/** Events for a story: the examples, with changes. */
import type {
  ApiKeyCreatedData,
  ApiKeyRevokedData,
  PayoutCalculatedData,
  PayoutRecordedData,
  PayrollRecordedData,
  PayrollVoidedData,
  PeriodData,
  RepData,
} from '../../schemas/events.ts'
import * as examples from '../schemas/examples.ts'
import type { Event } from './records.ts'

export const rep = (change: Partial<RepData> = {}): Event => ({
  type: 'commission.rep.recorded.v1',
  data: { ...examples.rep, ...change },
})
export const period = (change: Partial<PeriodData> = {}): Event => ({
  type: 'commission.period.recorded.v1',
  data: { ...examples.period, ...change },
})

export const payout = (
  id: string,
  supersedes: string | null = null,
  change: Partial<PayoutCalculatedData> = {},
): Event => ({
  type: 'commission.payout.calculated.v1',
  data: { ...examples.calculated, id, supersedes_id: supersedes, ...change },
})
export const recordedPayout = (
  id: string,
  supersedes: string | null = null,
  change: Partial<PayoutRecordedData> = {},
): Event => ({
  type: 'commission.payout.recorded.v1',
  data: { ...examples.recorded, id, supersedes_id: supersedes, ...change },
})

/** A payment, by default without a payout. */
export const payment = (id: string, change: Partial<PayrollRecordedData> = {}): Event => ({
  type: 'commission.payroll.recorded.v1',
  data: { ...examples.payment, id, payout_id: null, ...change },
})
export const voided = (id: string, reverses: string, change: Partial<PayrollVoidedData> = {}): Event => ({
  type: 'commission.payroll.voided.v1',
  data: { ...examples.voided, id, reverses_id: reverses, ...change },
})

export const keyCreated = (id: string, secret: string, change: Partial<ApiKeyCreatedData> = {}): Event => ({
  type: 'commission.api_key.created.v1',
  data: { ...examples.keyCreated, id, secret_sha256: secret.repeat(64), ...change },
})
export const keyRevoked = (id: string, change: Partial<ApiKeyRevokedData> = {}): Event => ({
  type: 'commission.api_key.revoked.v1',
  data: { ...examples.keyRevoked, id, ...change },
})
