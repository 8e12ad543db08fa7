/**
 * The text of a checkpoint, and of each change that its digest covers. The digest has only what an erasure and a
 * redaction leave unchanged, and what a copy of a client has: no free text, and not what replaced a payout.
 * docs/evidence.md describes both for other programs.
 */
import type { ListKind } from './stored/documents.ts'

/** The first line of a checkpoint. Another form of the text or of the digest has another number. */
export const CHECKPOINT_FORM = 'commission checkpoint 1'

const DESTINATION_TYPE = 'destination.type'
/** The fields of each kind, in order. A further field needs another form. */
export const digestedFields = {
  reps: ['id', 'status', 'started_on', 'departed_on'],
  periods: ['id', 'kind', 'timezone', 'starts_at', 'ends_at'],
  payouts: [
    'id',
    'rep_id',
    'period_id',
    'net_amount',
    'earned_amount',
    'currency',
    'supersedes_id',
    'calculated_at',
    'recorded_at',
  ],
  payroll_files: [
    'id',
    'rep_id',
    'period_id',
    'payout_id',
    'reverses_id',
    'amount',
    'currency',
    DESTINATION_TYPE,
    'recorded_at',
  ],
} as const satisfies Record<ListKind, readonly string[]>
export const digestedLineFields = ['id', 'category', 'amount', 'deal_id'] as const

/** A change as its digest sees it. */
type DigestedChange = {
  readonly id: string
  readonly kind: ListKind
  readonly sequence: number
  readonly published_at: string
  /** As an answer has it, or as it is stored. */
  readonly record: Fields
}
type Fields = Readonly<Record<string, unknown>>

/** Returns the text of a change: a list in JSON, without spaces. */
export const digestedText = ({ id, kind, sequence, published_at, record }: DigestedChange): string => {
  const values: unknown[] = [kind, id, sequence, published_at]
  for (const field of digestedFields[kind]) values.push(textAt(record, field))
  if (kind === 'payouts') {
    const { line_items } = record
    if (!Array.isArray(line_items)) throw new Error('a payout without lines')
    values.push(line_items.map((line: Fields) => digestedLineFields.map(field => textAt(line, field))))
  }
  return JSON.stringify(values)
}

const textAt = (record: Fields, path: string): string | null => {
  const value = path === DESTINATION_TYPE ? (record.destination as Fields | undefined)?.type : record[path]
  if (typeof value !== 'string' && value !== null) throw new Error(`a record without ${path}`)
  return value
}

/** Amounts of one currency, over all periods. */
export type ControlTotal = {
  readonly currency: string
  readonly owed: string
  readonly paid: string
  readonly open: string
}
export type CheckpointContent = {
  readonly organization: string
  /** Version of the rules that decided the changes. */
  readonly rules: number
  readonly sequence: number
  /** The id of the last change; null if there is none. */
  readonly change: string | null
  /** In hexadecimal digits. */
  readonly digest: string
  /** By currency. */
  readonly totals: readonly ControlTotal[]
  /** When it was signed. */
  readonly time: string
}

/** Returns the text that is signed. */
export const textOfCheckpoint = (checkpoint: CheckpointContent): string => {
  const { organization, rules, sequence, change, digest, totals, time } = checkpoint
  const amounts = totals.map(
    ({ currency, owed, paid, open }) => `total ${currency} owed ${owed} paid ${paid} open ${open}`,
  )
  return [
    CHECKPOINT_FORM,
    `organization ${organization}`,
    `line rules-${rules}`,
    `sequence ${sequence}`,
    `change ${change ?? 'none'}`,
    `digest ${digest}`,
    ...amounts,
    `time ${time}`,
    '',
  ].join('\n')
}
