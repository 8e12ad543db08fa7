/** Reads documents of the control index, as last written. */

import { StopError, Unanswered } from '../../core/runtime/index.ts'
import { multiGet, type Send } from '../../core/store/index.ts'
import { controlIndexOf, LIVE_ID, type LiveDocument, type PositionDocument } from '../../schemas/stored/documents.ts'
import { controlAddress } from '../../schemas/stored/layout.ts'

/** Returns documents by id. @throws StopError `index_missing` for one that does not exist; Unanswered */
export const getControlDocuments = async <Document>(
  send: Send,
  prefix: string,
  ids: readonly string[],
  signal?: AbortSignal,
): Promise<Map<string, Document>> => {
  const documents = new Map<string, Document>()
  if (ids.length === 0) return documents
  for (const document of await multiGet<Document>(
    send,
    ids.map(id => controlAddress(prefix, id)),
    signal,
  )) {
    if (!document.found) throw new StopError('index_missing', `${document._id} in ${controlIndexOf(prefix)}`)
    documents.set(document._id, document._source)
  }
  return documents
}

/** Returns one document. @throws as `getControlDocuments` */
export const getControlDocument = async <Document>(
  send: Send,
  prefix: string,
  id: string,
  signal: AbortSignal,
): Promise<Document> => {
  const document = (await getControlDocuments<Document>(send, prefix, [id], signal)).get(id)
  if (document === undefined) throw new Error('a multi-get answers without its only document')
  return document
}

/** `positions` by id, of those that the answer holds. */
type LivePositions = { readonly generation: string; readonly positions: ReadonlyMap<string, PositionDocument> }

/**
 * Reads positions of the live generation. The live document comes again after them in the same multi-get: one shard has
 * them all, and reads them in order. A swap between the two requests is noticed so, and everything is read again: after
 * it, the other generation decides records that readers never see.
 * @param idsOf the ids of the positions, which may be of the API keys
 * @throws as `getControlDocuments`
 */
export const getLivePositions = async (
  send: Send,
  prefix: string,
  idsOf: (generation: string) => readonly string[],
  signal: AbortSignal,
): Promise<LivePositions> => {
  for (;;) {
    const { generation } = (await getControlDocument<LiveDocument>(send, prefix, LIVE_ID, signal)).body
    const ids = [...idsOf(generation), LIVE_ID]
    const found = await getControlDocuments<PositionDocument | LiveDocument>(send, prefix, ids, signal)
    const positions = new Map<string, PositionDocument>()
    let now: string | undefined
    for (const [id, document] of found) {
      if (document.kind === 'live') now = document.body.generation
      else positions.set(id, document)
    }
    // An answer that is too long has the first documents only.
    if (now === undefined) throw new Unanswered('elasticsearch', 0)
    if (now === generation) return { generation, positions }
  }
}
