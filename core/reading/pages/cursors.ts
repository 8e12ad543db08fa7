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
  type DocumentName,
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
  /** Returns the remembered value of a name; undefined if it must be read. */
  readonly remembered: (org: string, generation: Generation, name: RecordName) => Remembered | undefined
  /** @param sortValue of a record that is visible at the position */
  readonly remember: (org: string, position: ReadPosition, name: RecordName, sortValue: number) => void
  readonly forget: (org: string, generation: Generation, name: RecordName) => void
}
type Remembered = { readonly sortValue: number; readonly takenBack: number }

/** Creates the memory of names. */
export const createCursors = (): Cursors => {
  const values = new LRUCache<string, Remembered>(lruOptions(CURSORS_REMEMBERED))
  const keyOf = (org: string, { id }: Generation, named: RecordName) =>
    `${id}:${named.kind}:${org}:${textOfName(named)}`
  return {
    remembered: (org, generation, name) => values.get(keyOf(org, generation, name)),
    remember: (org, { generation, takenBack }, name, sortValue) =>
      void values.set(keyOf(org, generation, name), { sortValue, takenBack }),
    forget: (org, generation, name) => void values.delete(keyOf(org, generation, name)),
  }
}

/** Where the sort value of a name comes from: the memory, or a document of the answer, by its place there. */
type Source =
  | { readonly from: 'memory'; readonly name: RecordName; readonly value: Remembered }
  | { readonly from: 'document'; readonly name: RecordName; readonly at: number }

type NamedAsked = {
  /** Undefined for each name that was not given. */
  readonly names: readonly (RecordName | undefined)[]
  /** Other documents to read with them. */
  readonly documentsOf: DocumentsOf
  readonly freshness: Parameters<PositionReader['readAt']>[2]
}
type NamedRead = {
  readonly position: ReadPosition
  /** One for each name; undefined for an unknown one, and for one that was not given. */
  readonly sortValues: readonly (number | undefined)[]
  /** The other documents. */
  readonly documents: readonly (DocumentSlice | undefined)[]
}
type NamedParts = { readonly readAt: PositionReader['readAt']; readonly cursors: Cursors }

/** Reads the position of an organization, the sort values of names there, and other documents with them. */
export const readNamed = async (parts: NamedParts, scope: ReadScope, asked: NamedAsked): Promise<NamedRead> => {
  for (;;) {
    const read = await readNamedOnce(parts, scope, asked)
    if (read !== 'outdated') return read
  }
}

/**
 * Reads once. Returns `outdated` if a remembered value is from before a time was taken back. It is forgotten then, and
 * the next read asks for its document.
 *
 * `readAt` asks for position, times (if they are due), live document and these names in one multi-get, in this order.
 * The first page after `payout_1` of `org_1`, partition 3:
 *
 *   POST /_mget?realtime=true&preference=published
 *   { docs: [{ _index: 'commission-control', _id: 'position:g1:3' }, { _index: …, _id: 'times:g1' },
 *     { _index: …, _id: 'live' }, { _index: 'commission-g1-payouts', _id: 'org_1:payout_1', routing: 'org_1' }] }
 */
const readNamedOnce = async (
  { readAt, cursors }: NamedParts,
  scope: ReadScope,
  { names, documentsOf, freshness }: NamedAsked,
): Promise<NamedRead | 'outdated'> => {
  const { org } = scope
  // Those of the generation that was asked last: its documents are the answer. The memory is looked at only here. An
  // entry that is evicted while the position is read would look like an unknown name.
  let sources: readonly (Source | undefined)[] = []
  let addresses: DocumentName[] = []
  const { position, documents } = await readAt(
    scope,
    generation => {
      addresses = []
      sources = names.map(name => {
        if (name === undefined) return undefined
        const value = cursors.remembered(org, generation, name)
        if (value !== undefined) return { from: 'memory', name, value }
        // The id is `org:id`. The organization routes it, so that the document is in the shard of its records.
        const address = generation.layout.addressOf(name.kind, recordId(org, name.id))
        return { from: 'document', name, at: addresses.push({ ...address, form: 'record' }) - 1 }
      })
      return [...addresses, ...documentsOf(generation)]
    },
    freshness,
  )
  const outdated = sources.filter(one => one?.from === 'memory' && one.value.takenBack !== position.takenBack)
  for (const one of outdated) if (one) cursors.forget(org, position.generation, one.name)
  if (outdated.length > 0) return 'outdated'
  const sortValues = sources.map(source => {
    if (source?.from !== 'document') return source?.value.sortValue
    const document = documents[source.at]
    const read = document && sortValueOf(source.name, document)
    if (read !== undefined && isVisible(read, position)) cursors.remember(org, position, source.name, read)
    return read
  })
  return { position, sortValues, documents: documents.slice(addresses.length) }
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
