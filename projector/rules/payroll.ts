/** Payroll records: money that has left, one payment per (rep, period) at a time, and the voids that reverse one. */

import type { PayrollDocument } from '../../schemas/documents.ts'
import { chainId, recordId } from '../../schemas/documents.ts'
import type { PayrollRecordedData, PayrollVoidedData } from '../../schemas/events.ts'
import { CHAIN_LENGTH_MAX } from '../../schemas/limits.ts'
import { addUpTo } from '../money.ts'
import { type Change, chainBefore, changeOf, type Draft, keyOf, recordBefore, type State } from '../state.ts'
import { type Decision, duplicate, type Placed, parked, type Rules } from './decision.ts'
import { isKnown } from './payouts.ts'

export const paymentRules: Rules<PayrollRecordedData> = {
  needs: ({ org_id, id, rep_id, period_id }) => [
    keyOf('payroll_files', recordId(org_id, id)),
    keyOf('reps', recordId(org_id, rep_id)),
    keyOf('periods', recordId(org_id, period_id)),
    keyOf('chains', chainId(org_id, rep_id, period_id)),
  ],
  needsNext: () => [],
  decide: (event, state) => decidePayment(event, state),
}

export const voidRules: Rules<PayrollVoidedData> = {
  needs: ({ org_id, id, reverses_id }) => [
    keyOf('payroll_files', recordId(org_id, id)),
    keyOf('payroll_files', recordId(org_id, reverses_id)),
  ],
  needsNext: ({ data }, state) => {
    const reversed = state.payroll(recordId(data.org_id, data.reverses_id))
    return reversed ? [keyOf('chains', chainId(data.org_id, reversed.rep_id, reversed.period_id))] : []
  },
  decide: (event, state) => decideVoid(event, state),
}

const decidePayment = (event: Placed<PayrollRecordedData>, state: State): Decision => {
  const { data, seq } = event
  const { org_id, rep_id, period_id } = data
  const seen = seenBefore(event, state)
  if (seen) return seen
  if (!isKnown(state, 'reps', recordId(org_id, rep_id), seq)) return parked('rep_unknown')
  if (!isKnown(state, 'periods', recordId(org_id, period_id), seq)) return parked('period_unknown')

  const { payouts, payroll } = chainBefore(state.chain(chainId(org_id, rep_id, period_id)), seq)
  if (data.payout_id !== null && !payouts.some(({ id }) => id === data.payout_id)) return parked('payout_mismatch')
  const voided = new Set(payroll.map(({ reverses_id }) => reverses_id))
  const paid = payroll.some(({ id, reverses_id }) => reverses_id === null && !voided.has(id))
  if (paid) return parked('payroll_already_recorded')
  return apply(event, state, { ...data, reverses_id: null })
}

const decideVoid = (event: Placed<PayrollVoidedData>, state: State): Decision => {
  const { data, seq } = event
  const { org_id, reverses_id } = data
  const seen = seenBefore(event, state)
  if (seen) return seen

  const reversed = recordBefore(state.payroll(recordId(org_id, reverses_id)), seq)
  if (reversed === null || reversed.reverses_id !== null) return parked('payroll_reversal_invalid')
  const body = reversed.body as PayrollBody
  const { payroll } = chainBefore(state.chain(chainId(org_id, reversed.rep_id, reversed.period_id)), seq)
  if (payroll.some(record => record.reverses_id === reverses_id)) return parked('payroll_reversal_invalid')
  if (body.currency !== data.currency) return parked('payroll_reversal_invalid')
  if (!addUpTo([body.amount, data.amount], '0')) return parked('payroll_reversal_invalid')
  const { rep_id, period_id, payout_id, destination } = body
  return apply(event, state, { ...data, rep_id, period_id, payout_id, destination })
}

type PayrollBody = Omit<PayrollRecordedData, 'org_id'> & { reverses_id: string | null }

const seenBefore = (
  { data, hash, seq }: Placed<PayrollRecordedData | PayrollVoidedData>,
  state: State,
): Decision | undefined => {
  const existing = recordBefore(state.payroll(recordId(data.org_id, data.id)), seq)
  if (existing === null) return undefined
  return existing.hash === hash ? duplicate : parked('id_reused')
}

const apply = (
  { data: { org_id }, hash, seq, at }: Placed<{ org_id: string }>,
  state: State,
  { id, rep_id, period_id, payout_id, reverses_id, amount, currency, destination, recorded_at }: PayrollBody,
): Decision => {
  const chain = chainBefore(state.chain(chainId(org_id, rep_id, period_id)), seq)
  if (chain.payroll.length >= CHAIN_LENGTH_MAX) return parked('chain_too_long')

  const body: PayrollBody = {
    id,
    rep_id,
    period_id,
    payout_id,
    reverses_id,
    amount,
    currency,
    destination,
    recorded_at,
  }
  const record: Draft<PayrollDocument> = { org_id, seq, at, rep_id, period_id, reverses_id, hash, body }
  const changes: Change[] = [
    changeOf('payroll_files', recordId(org_id, id), seq, record),
    changeOf('chains', chainId(org_id, rep_id, period_id), seq, {
      org_id,
      body: { ...chain, payroll: [...chain.payroll, { seq, id, reverses_id }] },
    }),
  ]
  return { outcome: 'applied', changes }
}
