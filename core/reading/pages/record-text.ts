/**
 * The text of a record and of a change, as the API answers them.
 * In: the documents of a record, and the position they were read at. Out: its JSON: in parts, which `api/answer/`
 *   joins, and whole for an export and a copy that follows.
 * Promises: copies bodies byte for byte. `superseded_by_id` shows only what a reader at this position may know.
 */
import type { ListKind } from '../../../schemas/stored/documents.ts'
import { instantOf } from '../../../schemas/values.ts'
import { unavailable } from '../../runtime/index.ts'
import {
  type DocumentSlice,
  type Hit,
  isReplaced,
  numberOf,
  type ReadPosition,
  textOfSlice,
} from '../../store/index.ts'
import { type Part, partOf } from '../pace.ts'
import { changeNameOf } from './read-list.ts'
import { type RecordName, textOfName } from './read-parameters.ts'
import type { FoundStatement } from './read-record.ts'

/** The end of a payout that nothing has replaced, in place of its closing brace. */
export const NOT_REPLACED = ',"superseded_by_id":null}'
const PAYOUT_END = partOf(NOT_REPLACED)
const END = partOf('}')

/** Returns the id of the payout that replaced this one, as JSON. */
export const replacementOf = (slice: DocumentSlice, position: ReadPosition): string => {
  if (!isReplaced(numberOf(slice, 'until_seq'), position)) return 'null'
  const id = textOfSlice(slice, 'superseded_by_id')
  if (id === null) throw unavailable('elasticsearch_malformed_record')
  return JSON.stringify(id)
}

/** Returns a body without its closing brace, so that fields can follow. */
export const withoutBrace = ({ bytes, bodyStart, bodyEnd }: DocumentSlice): Part => ({
  bytes,
  from: bodyStart,
  to: bodyEnd - 1,
})

/** Returns the fields that only a statement has, with the closing brace. */
export const traceFieldsOf = ({ bytes, bodyStart, bodyEnd }: DocumentSlice): Buffer =>
  bytes.subarray(bodyStart + 1, bodyEnd)

const joined = (parts: readonly Part[]): Buffer =>
  Buffer.concat(parts.map(({ bytes, from, to }) => bytes.subarray(from, to)))

/** Returns the JSON of a list's record, which is current at the position. */
export const textOfListed = (kind: ListKind, slice: DocumentSlice): Buffer =>
  joined([withoutBrace(slice), kind === 'payouts' ? PAYOUT_END : END])

/** Returns the JSON of a payout with its calculation trace. */
export const textOfStatement = ({ slice, trace, position }: FoundStatement): Buffer =>
  Buffer.concat([
    slice.bytes.subarray(slice.bodyStart, slice.bodyEnd - 1),
    Buffer.from(`,"superseded_by_id":${replacementOf(slice, position)},`),
    traceFieldsOf(trace),
  ])

/** Returns the text of a change in parts, as it was just after the change. */
export const changeParts = (hit: Hit, name: RecordName, sequence: number): Part[] => {
  const { kind, id, ordinal = 1 } = name
  const previousVersion = ordinal > 1 ? `"${id}.${ordinal - 1}"` : 'null'
  const superseded = kind === 'payouts' ? supersededIdOf(hit) : previousVersion
  const reversed = kind === 'payroll_files' ? JSON.stringify(textOfSlice(hit, 'reverses_id')) : 'null'
  const at = instantOf(numberOf(hit, 'at'))
  const head = `{"id":"${textOfName(name)}","kind":"${kind}","sequence":${sequence},"published_at":"${at}","supersedes_id":${superseded},"reverses_id":${reversed},"record":`
  // Just after this change, nothing had replaced the payout.
  return [partOf(head), withoutBrace(hit), kind === 'payouts' ? PAYOUT_END : END, END]
}

/** Returns the text of a change, as a page has it. */
export const textOfChange = (hit: Hit, sequence: number): Buffer =>
  joined(changeParts(hit, changeNameOf(hit), sequence))

const SUPERSEDES = Buffer.from('"supersedes_id":')

/** Returns what a payout replaced, as JSON. The first match is the field: no free text stands before it. */
const supersededIdOf = ({ bytes, bodyStart, bodyEnd }: DocumentSlice): string => {
  const from = bytes.indexOf(SUPERSEDES, bodyStart) + SUPERSEDES.length
  const [value] =
    /^(?:null|"payout_[0-9A-Za-z]{1,64}")(?=,)/.exec(bytes.toString('latin1', from, Math.min(from + 80, bodyEnd))) ?? []
  if (value === undefined) throw unavailable('elasticsearch_malformed_record')
  return value
}
