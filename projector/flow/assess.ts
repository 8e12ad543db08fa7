/**
 * In: a record. Out: all that can be said of it without looking at any other record: its envelope, its event or the
 * code why it is parked, its rules, and the documents that these rules may look at.
 */
import type { ParkCode } from '../../schemas/errors.ts'
import type { Envelope } from '../event/decode.ts'
import type { RawRecord } from '../event/raw-record.ts'
import { type Source, validate } from '../event/validate.ts'
import type { Names } from '../rules/decision.ts'
import type { RulesTable } from '../rules/rules.ts'
import { type Assessed, orgOf, type PassedOver } from './project.ts'

export type AssessSteps = {
  readonly decode: (record: RawRecord) => Envelope | 'undecodable'
  readonly source: Source
  readonly rules: RulesTable
}

export const assess = (record: RawRecord, { decode, source, rules: table }: AssessSteps): Assessed => {
  const envelope = decode(record)
  if (envelope === 'undecodable') return unseen(record, undefined, 'record_undecodable')
  const verdict = validate(envelope, record, source)
  if (typeof verdict === 'string') return unseen(record, envelope, verdict)
  // All that may still be asked of what it came from; the rest of it would take most of the memory.
  const { org_id } = verdict.data
  const { type, id } = envelope
  const rules = table[verdict.type]
  return { record, envelope: { type, id, data: { org_id } }, verdict, names: rules.names(verdict.data), rules }
}

/** The same where only the records of one organization are projected; undefined for all of them. */
export const assessOnly = (org: string | undefined, record: RawRecord, steps: AssessSteps): Assessed | PassedOver => {
  const assessed = assess(record, steps)
  return org === undefined || orgOf(assessed) === org ? assessed : { record, passedOver: true, rules: undefined }
}

const unseen = (record: RawRecord, envelope: Envelope | undefined, verdict: ParkCode): Assessed => ({
  record,
  envelope,
  verdict,
  names: NONE,
  rules: undefined,
})
/** What is parked unseen looks at nothing. */
const NONE: Names = {}
