/** In: one record, alone. Out: its envelope, its event or park code, its rules and the documents they may read. */
import type { ParkCode } from '../../../schemas/errors.ts'
import { isId } from '../../../schemas/values.ts'
import type { Envelope } from '../event/decode.ts'
import type { RawRecord } from '../event/raw-record.ts'
import { undecodableBatchOf } from '../event/undecodable-batch.ts'
import { hasFirstKeyRules, type PartitionSource, type ValidEvent, validate } from '../event/validate.ts'
import type { Reads } from '../rules/decision.ts'
import { type AnyRules, firstKeyRules, type RulesTable } from '../rules/rules.ts'

/** A record, and what is known of it without looking at other records. */
export type Assessed = {
  readonly record: RawRecord
  readonly envelope: Envelope | undefined
  /** The documents that its rules may read. */
  readonly reads: Reads
} & (
  | { readonly verdict: ValidEvent; readonly rules: AnyRules }
  | { readonly verdict: ParkCode; readonly rules: undefined }
)

/** A record of an organization that is not projected. */
export type Skipped = { readonly record: RawRecord; readonly skipped: true; readonly rules: undefined }

export type AssessSteps = {
  readonly decode: (record: RawRecord) => Envelope | 'undecodable'
  readonly source: PartitionSource
  readonly rules: RulesTable
  /** Projects only the records of this organization; undefined for all. */
  readonly org?: string | undefined
}

export const assess = (record: RawRecord, { decode, source, rules: table }: AssessSteps): Assessed => {
  const envelope = decode(record)
  if (envelope === 'undecodable') {
    return parkedBeforeRules(record, undefined, undecodableBatchOf(record) ? 'batch_undecodable' : 'record_undecodable')
  }
  const verdict = validate(envelope, record, source)
  if (typeof verdict === 'string') return parkedBeforeRules(record, envelope, verdict)
  // Parking needs only these fields. The rest of the envelope would take most of the memory.
  const { org_id } = verdict.data
  const { type, id } = envelope
  const rules = (hasFirstKeyRules(source, record) ? firstKeyRules : table)[verdict.type]
  return { record, envelope: { type, id, data: { org_id } }, verdict, reads: rules.reads(verdict.data), rules }
}

/** Like `assess`, but skips records of other organizations than `org`, if there is one. */
export const assessOrSkip = (record: RawRecord, steps: AssessSteps): Assessed | Skipped => {
  const { org } = steps
  const assessed = assess(record, steps)
  return org === undefined || orgOf(assessed) === org ? assessed : { record, skipped: true, rules: undefined }
}

const parkedBeforeRules = (record: RawRecord, envelope: Envelope | undefined, verdict: ParkCode): Assessed => ({
  record,
  envelope,
  verdict,
  reads: NONE,
  rules: undefined,
})
/** The rules read no documents for a record that is parked here. */
const NONE: Reads = {}

/** Returns the organization of a record: from its data, or else from its key. */
export const orgOf = ({ record: { key }, envelope }: Pick<Assessed, 'record' | 'envelope'>): string | undefined => {
  const data = envelope?.data
  const named = typeof data === 'object' && data !== null && 'org_id' in data ? data.org_id : undefined
  return [named, key?.toString('utf8')].find(candidate => isId('org', candidate))
}
