/** Reads the documents that the rules need, by realtime multi-get. */
import type { GetDocuments } from '../elasticsearch/client.ts'
import type { AnyDocument, AnyNewDocument, DocumentKey, IndexKind } from '../rules/state.ts'
import type { ReadDocuments } from './load.ts'
import { draftOf } from './serialize.ts'

export const readDocuments =
  (multiGet: GetDocuments, indexOf: (kind: IndexKind) => string): ReadDocuments =>
  async keys => {
    const found = await multiGet<AnyDocument>(keys.map(key => ({ _index: indexOf(kindOf(key)), _id: idOf(key) })))
    const drafts = new Map<DocumentKey, AnyNewDocument | null>()
    for (const [index, key] of keys.slice(0, found.length).entries()) {
      const document = found[index]
      drafts.set(key, document?.found ? draftOf(document._source) : null)
    }
    return drafts
  }

const kindOf = (key: DocumentKey): IndexKind => key.slice(0, key.indexOf('/')) as IndexKind
const idOf = (key: DocumentKey): string => key.slice(key.indexOf('/') + 1)
