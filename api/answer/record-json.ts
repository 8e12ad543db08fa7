/**
 * In: the documents of a record, and the position they were read at. Out: the record as its JSON is answered.
 * Promises: bodies are copied byte for byte; `superseded_by_id` says only what a reader at this position may know.
 */
import type { ListKind } from '../../schemas/stored/documents.ts'
import { type DocumentSlice, numberOf, textOf } from '../elasticsearch/slice-documents.ts'
import { unavailable } from '../failures.ts'
import { isReplaced, type Position } from '../read/position.ts'
import type { FoundStatement } from '../read/read-record.ts'

/** The id of the payout that replaced this one, as JSON. */
export const replacementOf = (cut: DocumentSlice, position: Position): string => {
  if (!isReplaced(numberOf(cut, 'until_seq'), position)) return 'null'
  const id = textOf(cut, 'superseded_by_id')
  if (id === null) throw unavailable('elasticsearch_malformed_record')
  return JSON.stringify(id)
}

/** A body without its closing brace: something follows. */
export const withoutBrace = ({ bytes, bodyStart, bodyEnd }: DocumentSlice): Buffer =>
  bytes.subarray(bodyStart, bodyEnd - 1)

/** What a statement has besides its payout, with the closing brace. */
export const traceFieldsOf = ({ bytes, bodyStart, bodyEnd }: DocumentSlice): Buffer =>
  bytes.subarray(bodyStart + 1, bodyEnd)

/** A record of a list, current at the position. */
export const textOfListed = (kind: ListKind, cut: DocumentSlice): Buffer =>
  Buffer.concat([withoutBrace(cut), Buffer.from(kind === 'payouts' ? ',"superseded_by_id":null}' : '}')])

export const textOfStatement = ({ cut, trace, position }: FoundStatement): Buffer =>
  Buffer.concat([
    withoutBrace(cut),
    Buffer.from(`,"superseded_by_id":${replacementOf(cut, position)},`),
    traceFieldsOf(trace),
  ])
