/**
 * In: a record. Out: all that can be said of it without looking at any other: what it says it is, whether it may be projected, and
 * which documents its rules may look at.
 */
import type { Envelope, RawRecord } from './decode.ts'
import type { Judged } from './project.ts'
import type { Names } from './rules/decision.ts'
import { rulesOf } from './rules/rules.ts'
import { type Source, validate } from './validate.ts'

export type JudgeSteps = {
  readonly decode: (record: RawRecord) => Envelope | 'undecodable'
  readonly source: Source
}

export const judge = (record: RawRecord, { decode, source }: JudgeSteps): Judged => {
  const envelope = decode(record)
  if (envelope === 'undecodable') return { record, envelope: undefined, verdict: 'record_undecodable', names: NONE }
  const verdict = validate(envelope, record, source)
  if (typeof verdict === 'string') return { record, envelope, verdict, names: NONE }
  // All that may still be asked of what it came from; the rest of it would take most of the memory.
  const { org_id } = verdict.data
  const { type, id } = envelope
  const names = rulesOf(verdict).names(verdict.data)
  return { record, envelope: { type, id, data: { org_id } }, verdict, names }
}

/** What is parked unseen looks at nothing. */
const NONE: Names = {}
