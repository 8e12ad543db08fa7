/** Serializes documents for storage. `body_bytes` and `body` come last: the API relies on that to cut out the body. */
import { textOf } from '../event/raw-json.ts'
import type { AnyDocument, AnyNewDocument, DocumentChange, IndexKind } from '../rules/state.ts'

/** A document as it was decided, and as a line of JSON. */
export type DecidedDocument = DocumentChange & { readonly line: string }

export const serialize = (change: DocumentChange): DecidedDocument => {
  const { key, kind, id, version, draft } = change
  const body = textOf(draft.body)
  const fields = JSON.stringify({ ...draft, body: undefined }).slice(0, -1)
  return { key, kind, id, version, draft, line: `${fields},"body_bytes":${Buffer.byteLength(body)},"body":${body}}\n` }
}

/** Returns the draft that a stored document was serialized from. */
export const draftOf = ({ body_bytes: _, ...draft }: AnyDocument): AnyNewDocument => draft

/** A document ready to send: its two lines are the bytes of `all` between `from` and `to`. */
export type Write = {
  readonly index: string
  readonly id: string
  readonly version: number
  readonly all: Buffer
  readonly from: number
  readonly to: number
}

/** A document that each write with the same version or a higher one replaces. */
export type Replaceable = Pick<Write, 'index' | 'id' | 'version'> & { readonly document: object }

const textOfReplaceable = ({ index, id, version, document }: Replaceable) => {
  const action = `{"index":{"_index":"${index}","_id":"${id}","version":${version},"version_type":"external_gte"}}\n`
  const line = `${JSON.stringify(document)}\n`
  return { index, id, version, action, line, lineBytes: Buffer.byteLength(line) }
}

/**
 * Packs documents into one buffer outside of the heap. Strings would be copied twice more before they are sent, and by
 * the garbage collector while they wait.
 * @param first is written with the documents, in the first request
 */
export const pack = (
  documents: readonly DecidedDocument[],
  indexOf: (kind: IndexKind) => string,
  first?: Replaceable,
): Write[] => {
  const versioned = documents.map(({ kind, id, version, line }) => {
    const index = indexOf(kind)
    const action = `{"index":{"_index":"${index}","_id":"${id}","version":${version},"version_type":"external"}}\n`
    return { index, id, version, action, line, lineBytes: Buffer.byteLength(line) }
  })
  const texts = first && versioned.length > 0 ? [textOfReplaceable(first), ...versioned] : versioned
  // Names are ASCII.
  const all = Buffer.allocUnsafe(texts.reduce((sum, { action, lineBytes }) => sum + action.length + lineBytes, 0))
  let at = 0
  return texts.map(({ index, id, version, action, line, lineBytes }) => {
    const from = at
    at += all.write(action, at, 'latin1')
    at += all.write(line, at, lineBytes === line.length ? 'latin1' : 'utf8')
    // Bytes that are not overwritten would send whatever this memory held before.
    if (at - from !== action.length + lineBytes) throw new Error('a document has another length than was counted')
    return { index, id, version, all, from, to: at }
  })
}
