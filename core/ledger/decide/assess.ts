/** In: one record, alone. Out: its envelope, its event or park code, its rules and the documents they may read. */
import type { ParkCode } from '../../../schemas/errors.ts'
import type { Envelope } from '../event/decode.ts'
import type { RawRecord } from '../event/raw-record.ts'
import { undecodableBatchOf } from '../event/undecodable-batch.ts'
import { hasFirstKeyRules, type PartitionSource, validate } from '../event/validate.ts'
import type { Reads } from '../rules/decision.ts'
import { firstKeyRules, type RulesTable } from '../rules/rules.ts'
import { type Assessed, orgOf, type Skipped } from './project.ts'

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
