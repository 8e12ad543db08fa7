/** The text of a change, for a page of `/changes` and for a copy that follows. */
import { instantOf } from '../../../schemas/values.ts'
import { unavailable } from '../../runtime/index.ts'
import { type DocumentSlice, type Hit, numberOf, textOfSlice } from '../../store/index.ts'
import { type Part, partOf } from '../capacity/pace.ts'
import { changeNameOf } from './read-list.ts'
import { type RecordName, textOfName } from './read-parameters.ts'
import { NOT_REPLACED } from './record-json.ts'

const END = partOf('}')

/** Returns a body without its closing brace, so that fields can follow. */
export const withoutBrace = ({ bytes, bodyStart, bodyEnd }: DocumentSlice): Part => ({
  bytes,
  from: bodyStart,
  to: bodyEnd - 1,
})

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
  Buffer.concat(changeParts(hit, changeNameOf(hit), sequence).map(({ bytes, from, to }) => bytes.subarray(from, to)))

const PAYOUT_END = partOf(NOT_REPLACED)
const SUPERSEDES = Buffer.from('"supersedes_id":')

/** Returns what a payout replaced, as JSON. The first match is the field: no free text stands before it. */
const supersededIdOf = ({ bytes, bodyStart, bodyEnd }: DocumentSlice): string => {
  const from = bytes.indexOf(SUPERSEDES, bodyStart) + SUPERSEDES.length
  const [value] =
    /^(?:null|"payout_[0-9A-Za-z]{1,64}")(?=,)/.exec(bytes.toString('latin1', from, Math.min(from + 80, bodyEnd))) ?? []
  if (value === undefined) throw unavailable('elasticsearch_malformed_record')
  return value
}
