/**
 * In: an organization, a list and its parameters. Out: the documents of one page, in order, whether more follow, and the
 *   position they were read at.
 * Promises: exactly what is visible (payouts, reps, periods: current) at the position, after the cursor, in the list's order, without a gap.
 * Can go wrong: a cursor that names nothing visible in this list is `invalid_cursor`, another organization's and an unknown one alike.
 */
import { LRUCache } from 'lru-cache'
import { type HeadBody, indexOf, type ListKind, recordId } from '../schemas/documents.ts'
import { bodyOf, type Cut, type Hit, idOf, numberOf } from './cut-documents.ts'
import type { Search } from './elasticsearch.ts'
import { Refusal, unavailable } from './failures.ts'
import { CURSORS_REMEMBERED } from './limits.ts'
import { type DocumentsOf, type Generation, isVisible, type Position, type PositionReader } from './position.ts'
import { createProjectionTime } from './projection-time.ts'
import { createReadPage } from './read-page.ts'
import type { ListParameters } from './read-parameters.ts'

export type Page = { readonly position: Position; readonly hits: readonly Hit[]; readonly hasMore: boolean }
export type ReadList = (org: string, kind: ListKind, parameters: ListParameters, signal: AbortSignal) => Promise<Page>

type Parts = {
  readonly prefix: string
  readonly search: Search
  readonly positions: Pick<PositionReader, 'readAt' | 'oldestTime'>
}

export const createReadList = ({ prefix, search, positions }: Parts): ReadList => {
  const readPage = createReadPage(search)
  const projectionTime = createProjectionTime(prefix, search, positions.oldestTime)
  // A record's place never changes, and what was visible stays so: a cursor that was good is good.
  const places = new LRUCache<string, number>({ max: CURSORS_REMEMBERED })

  return async (org, kind, { limit, startingAfter }, signal) => {
    const keyOf = ({ name }: Generation, id: string) => `${name}:${kind}:${org}:${id}`
    // Looked up once: what is forgotten while the position is read must not turn into a cursor that names nothing.
    let known: number | undefined = -1
    const cursorOf: DocumentsOf = generation => {
      if (startingAfter === undefined) return []
      known = places.get(keyOf(generation, startingAfter))
      if (known !== undefined) return []
      return [{ index: indexOf(prefix, generation.name, kind), id: recordId(org, startingAfter), form: 'record' }]
    }

    const { position, documents } = await positions.readAt(org, cursorOf, 'known-before', signal)
    const { generation } = position
    const after = known ?? placeOfCursor(kind, documents[0], position)
    const asked = { org, kind, index: indexOf(prefix, generation.name, kind), after, limit, position }
    const { hits, hasMore } = await readPage(asked, signal)

    if (startingAfter !== undefined) places.set(keyOf(generation, startingAfter), after)
    const last = hits.at(-1)
    if (last) places.set(keyOf(generation, recordIdOf(last)), last.place)
    const time = await projectionTime(org, position, last || after !== -1 ? 'records' : 'nothing', signal)
    return { position: { ...position, time }, hits, hasMore }
  }
}

/** The record's id: a document's is `org:id`, or `org:id:offset` of a version. */
export const recordIdOf = (hit: Hit): string => idOf(hit).split(':')[0] ?? ''

/** Where in the list's order a record stands: also one that has been replaced since, so that a cursor never dies. */
const placeOfCursor = (kind: ListKind, cursor: Cut | undefined, position: Position): number => {
  const place = cursor && (kind === 'reps' || kind === 'periods' ? firstSeqOf(cursor) : numberOf(cursor, 'seq'))
  if (place === undefined || !isVisible(place, position)) throw new Refusal('invalid_cursor')
  return place
}

const firstSeqOf = (head: Cut): number => {
  const seq = (bodyOf(head) as Partial<HeadBody>).versions?.[0]?.seq
  if (!Number.isSafeInteger(seq)) throw unavailable('elasticsearch_malformed_record')
  return seq as number
}
