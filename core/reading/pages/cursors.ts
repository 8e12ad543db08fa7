/**
 * In: the names that a client gives: a record of a list (a cursor), or a change (a cursor of the feed, or a moment).
 *   Out: the sort value of each: for a record that of its list, for a change the offset of its event.
 * Promises: a valid name stays valid, unless new rules park its record. Its sort value never changes, even if the
 *   record is replaced. Only a loss of records can move a record that is published again: so a value is remembered only
 *   if its record is visible, and until a time of the partition is taken back.
 */
import { LRUCache } from 'lru-cache'
import { listTraits } from '../../../schemas/lists.ts'
import { type HeadBody, recordId } from '../../../schemas/stored/documents.ts'
import { lruOptions, unavailable } from '../../runtime/index.ts'
import {
  bodyOf,
  type DocumentSlice,
  type DocumentsOf,
  type Generation,
  isVisible,
  numberOf,
  type PositionReader,
  type ReadPosition,
  type ReadScope,
} from '../../store/index.ts'
import { CURSORS_REMEMBERED } from '../limits.ts'
import { type RecordName, textOfName } from './read-parameters.ts'

export type Cursors = {
  /** @param names undefined for each name that was not given */
  readonly lookupOf: (org: string, names: readonly (RecordName | undefined)[]) => CursorLookup
  /** @param sortValue of a record that is visible at the position */
  readonly remember: (org: string, position: ReadPosition, name: RecordName, sortValue: number) => void
}
/**
 * Call `documents` first: it names the documents to read. Then call `sortValues` with them and the position that they
 * were read at: it returns one value for each name, undefined for an unknown name. It returns nothing if a remembered
 * value is from before a time was taken back: then look up again.
 */
type CursorLookup = {
  readonly documents: DocumentsOf
  readonly sortValues: (
    found: readonly (DocumentSlice | undefined)[],
    position: ReadPosition,
  ) => (number | undefined)[] | undefined
}
type Remembered = { readonly sortValue: number; readonly takenBack: number }

/** Creates the resolver of names and its cache. */
export const createCursors = (): Cursors => {
  const remembered = new LRUCache<string, Remembered>(lruOptions(CURSORS_REMEMBERED))
  const keyOf = (org: string, { id }: Generation, named: RecordName) =>
    `${id}:${named.kind}:${org}:${textOfName(named)}`
  const remember: Cursors['remember'] = (org, { generation, takenBack }, name, sortValue) =>
    void remembered.set(keyOf(org, generation, name), { sortValue, takenBack })

  const lookupOf: Cursors['lookupOf'] = (org, names) => {
    // Reads the cache once: an entry evicted while the position is read would look like an unknown name.
    let known: (Remembered | undefined)[] = []
    return {
      documents: generation => {
        known = names.map(name => name && remembered.get(keyOf(org, generation, name)))
        return names.flatMap((name, index) => {
          if (name === undefined || known[index] !== undefined) return []
          return [{ ...generation.layout.addressOf(name.kind, recordId(org, name.id)), form: 'record' }]
        })
      },
      sortValues: (found, position) => {
        const isOutdated = known.map(one => one !== undefined && one.takenBack !== position.takenBack)
        for (const [index, name] of names.entries())
          if (name && isOutdated[index]) remembered.delete(keyOf(org, position.generation, name))
        if (isOutdated.includes(true)) return undefined
        let next = 0
        return names.map((name, index) => {
          if (name === undefined || known[index] !== undefined) return known[index]?.sortValue
          const document = found[next++]
          const read = document && sortValueOf(name, document)
          if (read !== undefined && isVisible(read, position)) remember(org, position, name, read)
          return read
        })
      },
    }
  }
  return { lookupOf, remember }
}

/** Reads the position of an organization, the sort values of names there, and other documents with them. */
export const readNamed = async (
  { readAt, cursors }: { readonly readAt: PositionReader['readAt']; readonly cursors: Cursors },
  scope: ReadScope,
  names: readonly (RecordName | undefined)[],
  documentsOf: DocumentsOf,
  freshness: Parameters<PositionReader['readAt']>[2],
) => {
  for (;;) {
    const lookup = cursors.lookupOf(scope.org, names)
    const all: DocumentsOf = generation => [...lookup.documents(generation), ...documentsOf(generation)]
    const { position, documents } = await readAt(scope, all, freshness)
    const lookedUp = documents.length - documentsOf(position.generation).length
    const sortValues = lookup.sortValues(documents, position)
    if (sortValues) return { position, sortValues, documents: documents.slice(lookedUp) }
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
