/** Reads documents of the control index, as last written. */

import { StopError } from '../../core/runtime/index.ts'
import { multiGet, type Send } from '../../core/store/index.ts'
import { controlIndexOf } from '../../schemas/stored/documents.ts'
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
