/** Texts of stored documents in the form that the projector writes. */
import { createHash } from 'node:crypto'

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Returns a document: the fields, `body_bytes`, and `body` last. */
export const documentText = (fields: object, body: string): string =>
  `${JSON.stringify(fields).slice(0, -1)},"body_bytes":${Buffer.byteLength(body)},"body":${body}}`

export type Line = {
  id: string
  amount: string
  description?: string
  deal?: string
  category?: 'earned' | 'recovered' | 'adjusted'
}
export type Payout = {
  id: string
  rep?: string
  period?: string
  amount?: string
  currency?: string
  supersedes?: string | null
  lines?: readonly Line[]
  trace?: readonly { name: string; output_amount: string }[]
}

/** The replacement of a payout: its offset and its id. */
export type Replaced = { until: number; by: string }

/** Returns the bodies of a payout and of its statement, as the projector builds them. */
export const payoutBodies = (payout: Payout): { body: string; statement: string } => {
  const { lines = [{ id: 'line_1', amount: payout.amount ?? '0' }], trace } = payout
  const body = JSON.stringify({
    id: payout.id,
    rep_id: payout.rep ?? 'rep_1',
    period_id: payout.period ?? 'period_1',
    net_amount: payout.amount ?? '0',
    earned_amount: payout.amount ?? '0',
    currency: payout.currency ?? 'EUR',
    supersedes_id: payout.supersedes ?? null,
    calculated_at: trace ? '2026-02-01T08:30:00Z' : null,
    recorded_at: trace ? null : '2026-02-01T08:30:00Z',
    line_items: lines.map(({ id, amount, description, deal, category = 'earned' }) => ({
      id,
      category,
      description: description ?? '',
      amount,
      deal_id: deal ?? null,
    })),
  })
  const steps = (trace ?? []).map(({ name, output_amount }, place) => ({
    step: place + 1,
    name,
    strategy: 'flat',
    strategy_version: '1',
    inputs: {},
    output_amount,
    deal_id: null,
  }))
  const statement = JSON.stringify({ calculation_trace_recorded: trace !== undefined, calculation_trace: steps })
  return { body, statement }
}
