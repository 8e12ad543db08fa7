/** Rules of payouts: one current per (rep, period). A recalculation replaces it in one step, and both stay readable. */

import type { PayoutCalculatedData, PayoutRecordedData } from '../../../schemas/events.ts'
import { CHAIN_LENGTH_MAX, UNTIL_FOREVER } from '../../../schemas/limits.ts'
import { chainId, recordId } from '../../../schemas/stored/documents.ts'
import { withLists } from '../event/json-text.ts'
import type { PayoutData } from '../event/validate.ts'
import {
  chainBefore,
  type Decision,
  type DocumentChange,
  type DocumentRef,
  documentChangeOf,
  duplicate,
  isKnown,
  parked,
  type Rules,
  recordBefore,
  refOf,
  type SequencedEvent,
  type State,
} from './state.ts'

type Data = PayoutData<PayoutCalculatedData> | PayoutData<PayoutRecordedData>

type PayoutRefs = Readonly<Record<'payout' | 'rep' | 'period' | 'chain', DocumentRef>> & {
  readonly replaced: DocumentRef | undefined
}

/** Ids in the references: `recordId` is ORG:ID, `chainId` is ORG:REP:PERIOD. */
export const payoutRules: Rules<Data, PayoutRefs> = {
  reads: ({ org_id, id, rep_id, period_id, supersedes_id }) => ({
    payout: refOf('payouts', recordId(org_id, id)),
    rep: refOf('reps', recordId(org_id, rep_id)),
    period: refOf('periods', recordId(org_id, period_id)),
    chain: refOf('chains', chainId(org_id, rep_id, period_id)),
    replaced: supersedes_id === null ? undefined : refOf('payouts', recordId(org_id, supersedes_id)),
  }),
  thenReads: () => [],
  decide: (event, state) => decidePayout(event, state),
}

/** `state` may already have effects of later offsets: `recordBefore`, `isKnown` and `chainBefore` leave them out. */
const decidePayout = (event: SequencedEvent<Data, PayoutRefs>, state: State): Decision => {
  const { data, reads, hash, seq } = event
  const { org_id } = data
  const existing = recordBefore(state.payout(reads.payout), seq)
  if (existing) return existing.hash === hash ? duplicate : parked('id_reused')
  if (!isKnown(state, reads.rep, seq)) return parked('rep_unknown')
  if (!isKnown(state, reads.period, seq)) return parked('period_unknown')

  const chain = chainBefore(state.chain(reads.chain), seq)
  const current = chain.payouts.at(-1)?.id ?? null
  if (data.supersedes_id !== current) return parked('supersedes_mismatch')
  if (chain.payouts.length >= CHAIN_LENGTH_MAX) return parked('chain_too_long')

  const changes = [
    documentChangeOf(reads.payout, seq, payoutDraft(event)),
    documentChangeOf(refOf('statements', reads.payout.id), seq, { org_id, seq, body: traceOf(data) }),
    documentChangeOf(reads.chain, seq, {
      org_id,
      body: { ...chain, payouts: [...chain.payouts, { seq, id: data.id }] },
    }),
  ]
  // Only this event can have replaced it: a repeat overwrites what it wrote before with the same.
  if (reads.replaced) {
    const replaced = state.payout(reads.replaced)
    if (replaced === null) throw new Error('a chain names a payout that does not exist')
    changes.push(documentChangeOf(reads.replaced, seq, { ...replaced, until_seq: seq, superseded_by_id: data.id }))
  }
  return { outcome: 'applied', changes }
}

const payoutDraft = ({ data, hash, seq, at }: SequencedEvent<Data, PayoutRefs>): DocumentChange['draft'] => ({
  org_id: data.org_id,
  seq,
  until_seq: UNTIL_FOREVER,
  superseded_by_id: null,
  at,
  rep_id: data.rep_id,
  period_id: data.period_id,
  amount: data.net_amount,
  currency: data.currency,
  hash,
  // A text from here on: these fields, then the lists as they came.
  body: withLists(
    {
      id: data.id,
      rep_id: data.rep_id,
      period_id: data.period_id,
      net_amount: data.net_amount,
      earned_amount: data.earned_amount,
      currency: data.currency,
      supersedes_id: data.supersedes_id,
      calculated_at: 'calculated_at' in data ? data.calculated_at : null,
      recorded_at: 'recorded_at' in data ? data.recorded_at : null,
    },
    { line_items: data.line_items },
  ),
})

const traceOf = (data: Data) =>
  'calculation_trace' in data
    ? withLists({ calculation_trace_recorded: true }, { calculation_trace: data.calculation_trace })
    : { calculation_trace_recorded: false, calculation_trace: [] }
