/**
 * In: the names that a client gives: a record of a list (a cursor), or a change (a cursor of the feed, or a moment).
 *   Out: the place of each: for a record its place in its list, for a change the offset of its event.
 * Promises: a valid name stays valid forever. Its place never changes, even if the record is replaced.
 */
import { LRUCache } from 'lru-cache'
import { type HeadBody, indexOf, recordId } from '../../schemas/stored/documents.ts'
import { bodyOf, type DocumentSlice, numberOf } from '../elasticsearch/slice-documents.ts'
import { unavailable } from '../failures.ts'
import { CURSORS_REMEMBERED } from '../limits.ts'
import type { DocumentsOf, Generation } from './position.ts'
import { type RecordName, textOfName } from './read-parameters.ts'

export type CursorResolver = {
  /** @param names undefined for each name that was not given */
  readonly find: (org: string, names: readonly (RecordName | undefined)[]) => CursorLookup
  readonly remember: (org: string, generation: Generation, name: RecordName, place: number) => void
}
/** The documents to read, and then the place of each name; undefined for an unknown name. */
export type CursorLookup = {
  readonly documents: DocumentsOf
  readonly places: (found: readonly (DocumentSlice | undefined)[], generation: Generation) => (number | undefined)[]
}

export const createCursorResolver = (prefix: string): CursorResolver => {
  const remembered = new LRUCache<string, number>({ max: CURSORS_REMEMBERED })
  const keyOf = (org: string, { name }: Generation, named: RecordName) =>
    `${name}:${named.kind}:${org}:${textOfName(named)}`

  const find: CursorResolver['find'] = (org, names) => {
    // Reads the cache once: an entry evicted while the position is read would look like an unknown name.
    let known: (number | undefined)[] = []
    return {
      documents: generation => {
        known = names.map(name => name && remembered.get(keyOf(org, generation, name)))
        return names.flatMap((name, place) => {
          if (name === undefined || known[place] !== undefined) return []
          return [{ index: indexOf(prefix, generation.name, name.kind), id: recordId(org, name.id), form: 'record' }]
        })
      },
      places: (found, generation) => {
        let next = 0
        return names.map((name, place) => {
          if (name === undefined || known[place] !== undefined) return known[place]
          const document = found[next++]
          const read = document && placeOf(name, document)
          if (read !== undefined) remembered.set(keyOf(org, generation, name), read)
          return read
        })
      },
    }
  }
  return {
    find,
    remember: (org, generation, name, place) => void remembered.set(keyOf(org, generation, name), place),
  }
}

const placeOf = ({ kind, ordinal = 1 }: RecordName, document: DocumentSlice): number | undefined => {
  if (kind === 'payouts' || kind === 'payroll_files') return numberOf(document, 'seq')
  const { versions } = bodyOf(document) as Partial<HeadBody>
  if (!Array.isArray(versions) || !versions.every(({ seq }) => Number.isSafeInteger(seq))) {
    throw unavailable('elasticsearch_malformed_record')
  }
  return versions[ordinal - 1]?.seq
}
