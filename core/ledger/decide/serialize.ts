/** Serializes documents for storage. `body_bytes` and `body` come last: the API relies on that to cut out the body. */
import type { WithKind } from '../../../schemas/stored/documents.ts'
import type { Address, GenerationLayout } from '../../../schemas/stored/layout.ts'
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

/** A document ready to send: its two lines are the bytes of `all` between `from` and `to`. */
export type Write = {
  readonly address: Address
  readonly version: number
  readonly all: Buffer
  readonly from: number
  readonly to: number
}

/** A document that each write with the same version or a higher one replaces. */
export type Replaceable = Pick<Write, 'address' | 'version'> & { readonly document: object }

const textOfReplaceable = ({ address, version, document }: Replaceable) => {
  const action = actionOf(address, `"version":${version},"version_type":"external_gte"`)
  const line = `${JSON.stringify(document)}\n`
  return { address, version, action, line, lineBytes: Buffer.byteLength(line) }
}

/** Names and ids have no character that JSON escapes. */
const actionOf = ({ _index, _id, routing }: Address, versioned: string): string => {
  const routed = routing === undefined ? '' : `"routing":"${routing}",`
  return `{"index":{"_index":"${_index}","_id":"${_id}",${routed}${versioned}}}\n`
}

/**
 * Packs documents into one buffer outside of the heap. Strings would be copied twice more before they are sent, and by
 * the garbage collector while they wait.
 * @param first is written with the documents, in the first request
 */
export const pack = (
  documents: readonly DecidedDocument[],
  { addressOf, storedWith }: Pick<GenerationLayout, 'addressOf' | 'storedWith'>,
  first?: Replaceable,
): Write[] => {
  const versioned = documents.map(({ kind, id, version, line: own }) => {
    const address = addressOf(kind, id)
    const action = actionOf(address, `"version":${version},"version_type":"external"`)
    const fields = storedWith(kind)
    const line = fields === '' ? own : `{${fields}${own.slice(1)}`
    return { address, version, action, line, lineBytes: Buffer.byteLength(line) }
  })
  const texts = first && versioned.length > 0 ? [textOfReplaceable(first), ...versioned] : versioned
  // Names are ASCII.
  const all = Buffer.allocUnsafe(texts.reduce((sum, { action, lineBytes }) => sum + action.length + lineBytes, 0))
  let at = 0
  return texts.map(({ address, version, action, line, lineBytes }) => {
    const from = at
    at += all.write(action, at, 'latin1')
    at += all.write(line, at, lineBytes === line.length ? 'latin1' : 'utf8')
    // Bytes that are not overwritten would send whatever this memory held before.
    if (at - from !== action.length + lineBytes) throw new Error('a document has another length than was counted')
    return { address, version, all, from, to: at }
  })
}
