/**
 * In: the names that a client gives: a record of a list (a cursor), or a change (a cursor of the feed, or a moment).
 *   Out: the sort value of each: for a record that of its list, for a change the offset of its event.
 * Promises: a valid name stays valid, unless new rules park its record. Its sort value never changes, even if the
 *   record is replaced.
 */
import { LRUCache } from 'lru-cache'
import { listTraits } from '../../../schemas/lists.ts'
import { type HeadBody, recordId } from '../../../schemas/stored/documents.ts'
import { atMost, unavailable } from '../../runtime/index.ts'
import { bodyOf, type DocumentSlice, type DocumentsOf, type Generation, numberOf } from '../../store/index.ts'
import { CURSORS_REMEMBERED } from '../limits.ts'
import { type RecordName, textOfName } from './read-parameters.ts'

export type Cursors = {
  /** @param names undefined for each name that was not given */
  readonly lookupOf: (org: string, names: readonly (RecordName | undefined)[]) => CursorLookup
  readonly remember: (org: string, generation: Generation, name: RecordName, sortValue: number) => void
}
/**
 * Call `documents` first: it names the documents to read. Then call `sortValues` with them: it returns one value for
 * each name, undefined for an unknown name.
 */
type CursorLookup = {
  readonly documents: DocumentsOf
  readonly sortValues: (found: readonly (DocumentSlice | undefined)[], generation: Generation) => (number | undefined)[]
}

/** Creates the resolver of names and its cache. */
export const createCursors = (): Cursors => {
  const remembered = new LRUCache<string, number>(atMost(CURSORS_REMEMBERED))
  const keyOf = (org: string, { id }: Generation, named: RecordName) =>
    `${id}:${named.kind}:${org}:${textOfName(named)}`

  const lookupOf: Cursors['lookupOf'] = (org, names) => {
    // Reads the cache once: an entry evicted while the position is read would look like an unknown name.
    let known: (number | undefined)[] = []
    return {
      documents: generation => {
        known = names.map(name => name && remembered.get(keyOf(org, generation, name)))
        return names.flatMap((name, index) => {
          if (name === undefined || known[index] !== undefined) return []
          return [{ ...generation.layout.addressOf(name.kind, recordId(org, name.id)), form: 'record' }]
        })
      },
      sortValues: (found, generation) => {
        let next = 0
        return names.map((name, index) => {
          if (name === undefined || known[index] !== undefined) return known[index]
          const document = found[next++]
          const read = document && sortValueOf(name, document)
          if (read !== undefined) remembered.set(keyOf(org, generation, name), read)
          return read
        })
      },
    }
  }
  return {
    lookupOf,
    remember: (org, generation, name, sortValue) => void remembered.set(keyOf(org, generation, name), sortValue),
  }
}

const sortValueOf = ({ kind, ordinal = 1 }: RecordName, document: DocumentSlice): number | undefined => {
  if (!listTraits[kind].hasVersions) return numberOf(document, 'seq')
  return versionsIn(document)[ordinal - 1]?.seq
}

/** Returns the versions of a rep or a period from its head. @throws Refusal `unavailable` if the head is malformed */
export const versionsIn = (head: DocumentSlice): HeadBody['versions'] => {
  const { versions } = bodyOf<HeadBody>(head)
  if (!Array.isArray(versions) || !versions.every(({ seq }) => Number.isSafeInteger(seq))) {
    throw unavailable('elasticsearch_malformed_record')
  }
  return versions
}
