/**
 * The stored text of a document, and back. `body_bytes` and `body` come last: the API relies on that to cut out the
 * body.
 */
import type { WithKind } from '../../../schemas/stored/documents.ts'
import { textOf } from '../event/raw-json.ts'
import type { AnyDocument, AnyNewDocument, DocumentChange } from '../rules/state.ts'

/** A document as it was decided, and as a line of JSON. */
export type DecidedDocument = DocumentChange & { readonly line: string }

export const serialize = (change: DocumentChange): DecidedDocument => {
  const { key, kind, id, version, draft } = change
  const body = textOf(draft.body)
  const fields = JSON.stringify({ ...draft, body: undefined }).slice(0, -1)
  return { key, kind, id, version, draft, line: `${fields},"body_bytes":${Buffer.byteLength(body)},"body":${body}}\n` }
}

/** Returns the draft that a stored document was serialized from. */
export const draftOf = (stored: WithKind<AnyDocument>): AnyNewDocument => {
  const { body_bytes: _, kind: __, ...draft } = stored
  return draft
}
