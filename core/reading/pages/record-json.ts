/**
 * In: the documents of a record, and the position they were read at. Out: the JSON of the record, as the API answers
 *   it: in parts, which `api/answer/answer-page.ts` joins, and whole for an export.
 * Promises: copies bodies byte for byte. `superseded_by_id` shows only what a reader at this position may know.
 */
import type { ListKind } from '../../../schemas/stored/documents.ts'
import { unavailable } from '../../runtime/index.ts'
import { type DocumentSlice, isReplaced, numberOf, type ReadPosition, textOfSlice } from '../../store/index.ts'
import type { FoundStatement } from './read-record.ts'

/** The end of a payout that nothing has replaced, in place of its closing brace. */
export const NOT_REPLACED = ',"superseded_by_id":null}'

/** Returns the id of the payout that replaced this one, as JSON. */
export const replacementOf = (slice: DocumentSlice, position: ReadPosition): string => {
  if (!isReplaced(numberOf(slice, 'until_seq'), position)) return 'null'
  const id = textOfSlice(slice, 'superseded_by_id')
  if (id === null) throw unavailable('elasticsearch_malformed_record')
  return JSON.stringify(id)
}

/** Returns a body without its closing brace, so that fields can follow. */
const withoutBrace = ({ bytes, bodyStart, bodyEnd }: DocumentSlice): Buffer => bytes.subarray(bodyStart, bodyEnd - 1)

/** Returns the fields that only a statement has, with the closing brace. */
export const traceFieldsOf = ({ bytes, bodyStart, bodyEnd }: DocumentSlice): Buffer =>
  bytes.subarray(bodyStart + 1, bodyEnd)

/** Returns the JSON of a list's record, which is current at the position. */
export const textOfListed = (kind: ListKind, slice: DocumentSlice): Buffer =>
  Buffer.concat([withoutBrace(slice), Buffer.from(kind === 'payouts' ? NOT_REPLACED : '}')])

/** Returns the JSON of a payout with its calculation trace. */
export const textOfStatement = ({ slice, trace, position }: FoundStatement): Buffer =>
  Buffer.concat([
    withoutBrace(slice),
    Buffer.from(`,"superseded_by_id":${replacementOf(slice, position)},`),
    traceFieldsOf(trace),
  ])
