/** Reads the documents that decisions need. */

import type { GenerationLayout, IndexKind } from '../../../schemas/stored/layout.ts'
import {
  type AnyDocument,
  type AnyNewDocument,
  type DocumentKey,
  draftOf,
  type ReadDocuments,
} from '../../ledger/index.ts'
import type { GetDocuments } from '../elasticsearch/client.ts'

/** Reads documents as drafts. The projector gives `getFromPrimaries`, because decisions rest on them. */
export const readDocuments =
  (getDocuments: GetDocuments, { addressOf }: Pick<GenerationLayout, 'addressOf'>): ReadDocuments =>
  async keys => {
    const found = await getDocuments<AnyDocument>(keys.map(key => addressOf(kindOf(key), idOf(key))))
    const drafts = new Map<DocumentKey, AnyNewDocument | null>()
    for (const [index, key] of keys.slice(0, found.length).entries()) {
      const document = found[index]
      drafts.set(key, document?.found ? draftOf(document._source) : null)
    }
    return drafts
  }

const kindOf = (key: DocumentKey): IndexKind => key.slice(0, key.indexOf('/')) as IndexKind
const idOf = (key: DocumentKey): string => key.slice(key.indexOf('/') + 1)
