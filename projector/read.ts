/** Realtime multi-get of documents, as the rules need them. */
import type { Place as DocumentPlace, Found } from './elasticsearch.ts'
import type { ReadDocuments } from './load.ts'
import type { AnyDraft, Key, Place } from './state.ts'

export const readDocuments =
  (multiGet: (docs: readonly DocumentPlace[]) => Promise<Found[]>, indexOf: (place: Place) => string): ReadDocuments =>
  async keys => {
    const found = await multiGet(keys.map(key => ({ _index: indexOf(placeOf(key)), _id: idOf(key) })))
    const drafts = new Map<Key, AnyDraft | null>()
    for (const [place, key] of keys.slice(0, found.length).entries()) drafts.set(key, draftOf(found[place]))
    return drafts
  }

const draftOf = (found: Found | undefined): AnyDraft | null => {
  if (!found?.found) return null
  const { body_bytes: _, ...draft } = found._source as AnyDraft & { body_bytes: number }
  return draft as AnyDraft
}

const placeOf = (key: Key): Place => key.slice(0, key.indexOf('/')) as Place
const idOf = (key: Key): string => key.slice(key.indexOf('/') + 1)
