/** Rules of payroll records: one payment per (rep, period) at a time, and the voids that reverse payments. */

import type { PayrollRecordedData, PayrollVoidedData } from '../../../schemas/events.ts'
import { CHAIN_LENGTH_MAX } from '../../../schemas/limits.ts'
import { chainId, type PayrollBody, type PayrollDocument, recordId } from '../../../schemas/stored/documents.ts'
import { addUpTo } from '../event/money.ts'
import {
  chainBefore,
  type Decision,
  type DocumentChange,
  type DocumentRef,
  documentChangeOf,
  duplicate,
  isKnown,
  type NewDocument,
  parked,
  type Rules,
  recordBefore,
  refOf,
  type SequencedEvent,
  type State,
} from './state.ts'

type PaymentRefs = Readonly<Record<'payroll' | 'rep' | 'period' | 'chain', DocumentRef>>
type VoidRefs = Readonly<Record<'payroll' | 'reversed', DocumentRef>>

export const paymentRules: Rules<PayrollRecordedData, PaymentRefs> = {
  reads: ({ org_id, id, rep_id, period_id }) => ({
    payroll: refOf('payroll_files', recordId(org_id, id)),
    rep: refOf('reps', recordId(org_id, rep_id)),
    period: refOf('periods', recordId(org_id, period_id)),
    chain: refOf('chains', chainId(org_id, rep_id, period_id)),
  }),
  thenReads: () => [],
  decide: (event, state) => decidePayment(event, state),
}

export const voidRules: Rules<PayrollVoidedData, VoidRefs> = {
  reads: ({ org_id, id, reverses_id }) => ({
    payroll: refOf('payroll_files', recordId(org_id, id)),
    reversed: refOf('payroll_files', recordId(org_id, reverses_id)),
  }),
  thenReads: ({ data, reads }, state) => {
    const reversed = state.payroll(reads.reversed)
    return reversed ? [chainRefOf(data.org_id, reversed)] : []
  },
  decide: (event, state) => decideVoid(event, state),
}

const chainRefOf = (
  org: string,
  { rep_id, period_id }: { readonly rep_id: string; readonly period_id: string },
): DocumentRef => refOf('chains', chainId(org, rep_id, period_id))

const decidePayment = (event: SequencedEvent<PayrollRecordedData, PaymentRefs>, state: State): Decision => {
  const { data, reads, seq } = event
  const seen = seenBefore(event, state)
  if (seen) return seen
  if (!isKnown(state, reads.rep, seq)) return parked('rep_unknown')
  if (!isKnown(state, reads.period, seq)) return parked('period_unknown')

  const { payouts, payroll } = chainBefore(state.chain(reads.chain), seq)
  if (data.payout_id !== null && !payouts.some(({ id }) => id === data.payout_id)) return parked('payout_mismatch')
  const voided = new Set(payroll.map(({ reverses_id }) => reverses_id))
  const paid = payroll.some(({ id, reverses_id }) => reverses_id === null && !voided.has(id))
  if (paid) return parked('payroll_already_recorded')
  return addToChain(event, reads.chain, state, { ...data, reverses_id: null })
}

const decideVoid = (event: SequencedEvent<PayrollVoidedData, VoidRefs>, state: State): Decision => {
  const { data, reads, seq } = event
  const { org_id, reverses_id } = data
  const seen = seenBefore(event, state)
  if (seen) return seen

  const invalid = parked('payroll_reversal_invalid')
  const reversed = recordBefore(state.payroll(reads.reversed), seq)
  // No such record, or it is a void itself.
  if (reversed === null || reversed.reverses_id !== null) return invalid
  const { body } = reversed
  const chainRef = chainRefOf(org_id, reversed)
  const { payroll } = chainBefore(state.chain(chainRef), seq)
  // Another void has reversed it already.
  if (payroll.some(record => record.reverses_id === reverses_id)) return invalid
  if (body.currency !== data.currency) return invalid
  // The amount is not exactly the opposite.
  if (!addUpTo([body.amount, data.amount], '0')) return invalid
  const { rep_id, period_id, payout_id, destination } = body
  return addToChain(event, chainRef, state, { ...data, rep_id, period_id, payout_id, destination })
}

const seenBefore = (
  { reads, hash, seq }: SequencedEvent<unknown, Pick<PaymentRefs, 'payroll'>>,
  state: State,
): Decision | undefined => {
  const existing = recordBefore(state.payroll(reads.payroll), seq)
  if (existing === null) return undefined
  return existing.hash === hash ? duplicate : parked('id_reused')
}

/** Applies a payment or void that passed the checks above, unless its chain is full. */
const addToChain = (
  { data: { org_id }, reads, hash, seq, at }: SequencedEvent<{ org_id: string }, Pick<PaymentRefs, 'payroll'>>,
  chainRef: DocumentRef,
  state: State,
  { id, rep_id, period_id, payout_id, reverses_id, amount, currency, destination, recorded_at }: PayrollBody,
): Decision => {
  const chain = chainBefore(state.chain(chainRef), seq)
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
  const record: NewDocument<PayrollDocument> = {
    org_id,
    seq,
    at,
    rep_id,
    period_id,
    reverses_id,
    amount,
    currency,
    hash,
    body,
  }
  const changes: DocumentChange[] = [
    documentChangeOf(reads.payroll, seq, record),
    documentChangeOf(chainRef, seq, {
      org_id,
      body: { ...chain, payroll: [...chain.payroll, { seq, id, reverses_id }] },
    }),
  ]
  return { outcome: 'applied', changes }
}
