/** Payouts: one current per (rep, period); a recalculation replaces it in one step and both stay readable. */
import { chainId, recordId } from '../../schemas/documents.ts'
import type { PayoutCalculatedData, PayoutRecordedData } from '../../schemas/events.ts'
import { CHAIN_LENGTH_MAX, UNTIL_FOREVER } from '../../schemas/limits.ts'
import { withLists } from '../json-text.ts'
import { type Change, chainBefore, changeOf, keyOf, recordBefore, type State, versionsBefore } from '../state.ts'
import type { PayoutData } from '../validate.ts'
import { type Decision, duplicate, type Placed, parked, type Rules } from './decision.ts'

type Data = PayoutData<PayoutCalculatedData> | PayoutData<PayoutRecordedData>

export const payoutRules: Rules<Data> = {
  needs: ({ org_id, id, rep_id, period_id, supersedes_id }) => [
    keyOf('payouts', recordId(org_id, id)),
    keyOf('reps', recordId(org_id, rep_id)),
    keyOf('periods', recordId(org_id, period_id)),
    keyOf('chains', chainId(org_id, rep_id, period_id)),
    ...(supersedes_id === null ? [] : [keyOf('payouts', recordId(org_id, supersedes_id))]),
  ],
  needsNext: () => [],
  decide: (event, state) => decide(event, state),
}

const decide = (event: Placed<Data>, state: State): Decision => {
  const { data, hash, seq } = event
  const { org_id, rep_id, period_id } = data
  const existing = recordBefore(state.payout(recordId(org_id, data.id)), seq)
  if (existing) return existing.hash === hash ? duplicate : parked('id_reused')
  if (!isKnown(state, 'reps', recordId(org_id, rep_id), seq)) return parked('rep_unknown')
  if (!isKnown(state, 'periods', recordId(org_id, period_id), seq)) return parked('period_unknown')

  const chain = chainBefore(state.chain(chainId(org_id, rep_id, period_id)), seq)
  const current = chain.payouts.at(-1)?.id ?? null
  if (data.supersedes_id !== current) return parked('supersedes_mismatch')
  if (chain.payouts.length >= CHAIN_LENGTH_MAX) return parked('chain_too_long')

  const change = (place: Change['place'], id: string, draft: Change['draft']): Change => changeOf(place, id, seq, draft)
  const changes = [
    change('payouts', recordId(org_id, data.id), payoutDraft(event)),
    change('statements', recordId(org_id, data.id), { org_id, seq, body: traceOf(data) }),
    change('chains', chainId(org_id, rep_id, period_id), {
      org_id,
      body: { ...chain, payouts: [...chain.payouts, { seq, id: data.id }] },
    }),
  ]
  if (current !== null) {
    const id = recordId(org_id, current)
    const replaced = state.payout(id)
    if (replaced === null) throw new Error('a payout that its chain names is missing')
    changes.push(change('payouts', id, { ...replaced, until_seq: seq, superseded_by_id: data.id }))
  }
  return { outcome: 'applied', changes }
}

/** Whether a rep or period was recorded before an offset. */
export const isKnown = (state: State, place: 'reps' | 'periods', id: string, seq: number): boolean =>
  versionsBefore(state.head(place, id), seq).length > 0

const payoutDraft = ({ data, hash, seq, at }: Placed<Data>): Change['draft'] => ({
  org_id: data.org_id,
  seq,
  until_seq: UNTIL_FOREVER,
  superseded_by_id: null,
  at,
  rep_id: data.rep_id,
  period_id: data.period_id,
  hash,
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
