/**
 * Records as readers see them, without offsets. Generations with equal content are equal, even if other rules parked
 * records in between.
 */

import { UNTIL_FOREVER } from '../../schemas/limits.ts'
import type { Kind } from '../../schemas/stored/documents.ts'
import type { Document, Fields } from './as-of.ts'

/** Without chains: they only list the other records. */
export const recordKinds = [
  'reps',
  'periods',
  'payouts',
  'statements',
  'payroll_files',
  'parked',
] as const satisfies Kind[]
export type RecordKind = (typeof recordKinds)[number]

export type ComparableRecord = {
  readonly id: string
  readonly rep: string | null
  readonly period: string | null
  readonly content: Fields
}

/** The content of a record as of a position; of a rep or period its current version. Undefined for other documents. */
export const comparableRecordOf = (kind: RecordKind, { id, source }: Document): ComparableRecord | undefined => {
  const { body: fields = {}, until_seq, superseded_by_id, code, type = null, event_id = null } = source
  if (kind === 'parked') return { id, rep: null, period: null, content: { code, type, event_id, ...fields } }
  // A head.
  if (source.seq === undefined) return undefined
  const own = id.split(':')[1] ?? ''
  if (kind === 'statements') return { id: own, rep: null, period: null, content: fields }
  if (kind !== 'payouts' && kind !== 'payroll_files') {
    return until_seq === UNTIL_FOREVER ? { id: own, rep: null, period: null, content: fields } : undefined
  }
  const [rep, period] = [String(fields.rep_id), String(fields.period_id)]
  const content = kind === 'payouts' ? { ...fields, superseded_by_id } : fields
  return { id: own, rep, period, content }
}

export type PayoutContent = {
  readonly id: string
  readonly rep_id: string
  readonly period_id: string
  readonly net_amount: string
  readonly earned_amount: string
  readonly currency: string
  readonly calculated_at: string | null
  readonly line_items: readonly LineContent[]
  readonly superseded_by_id: string | null
}
export type LineContent = {
  readonly id: string
  readonly category: string
  readonly description: string
  readonly amount: string
  readonly deal_id: string | null
}
export type PayrollContent = {
  readonly id: string
  readonly rep_id: string
  readonly period_id: string
  readonly payout_id: string | null
  readonly reverses_id: string | null
  readonly amount: string
  readonly currency: string
  readonly destination: { readonly type: string; readonly label: string }
  readonly recorded_at: string
}
