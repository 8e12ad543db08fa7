/**
 * In: an organization, a list and its parameters. Out: the documents of one page, in order, whether more follow, and the
 *   position they were read at.
 * Promises: exactly what is visible (payouts, reps, periods: current) at the position, after the cursor, in the list's order, without a gap.
 * Can go wrong: a cursor that names nothing visible in this list is `invalid_cursor`, another organization's and an unknown one alike.
 */
import { type HeadBody, indexOf, type ListKind, recordId } from '../schemas/documents.ts'
import { bodyOf, type Cut, numberOf } from './cut-documents.ts'
import type { Search } from './elasticsearch.ts'
import { Refusal, unavailable } from './failures.ts'
import { isVisible, type Position, type PositionReader } from './position.ts'
import { createReadPage } from './read-page.ts'
import type { ListParameters } from './read-parameters.ts'

export type Page = { readonly position: Position; readonly cuts: readonly Cut[]; readonly hasMore: boolean }
export type ReadList = (org: string, kind: ListKind, parameters: ListParameters, signal: AbortSignal) => Promise<Page>

export const createReadList = (prefix: string, search: Search, readAt: PositionReader['readAt']): ReadList => {
  const readPage = createReadPage(search)
  return async (org, kind, { limit, startingAfter }, signal) => {
    const { position, documents } = await readAt(
      org,
      generation =>
        startingAfter === undefined
          ? []
          : [{ index: indexOf(prefix, generation.name, kind), id: recordId(org, startingAfter), form: 'record' }],
      'known-before',
      signal,
    )
    const after = startingAfter === undefined ? -1 : placeOfCursor(kind, documents[0], position)
    const index = indexOf(prefix, position.generation.name, kind)
    const page = await readPage({ org, kind, index, after, limit, position }, signal)
    return { position, ...page }
  }
}

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
