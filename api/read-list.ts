/**
 * In: an organization, a list and its parameters. Out: the documents of one page, in order, whether more follow, and the
 *   position they were read at.
 * Promises: exactly what is visible (payouts, reps, periods: current) at the position, after the cursor, in the list's order, without a gap.
 * Can go wrong: a cursor that names nothing visible in this list is `invalid_cursor`, another organization's and an unknown one alike.
 */
import { type HeadBody, indexOf, type ListKind, listOrder, recordId } from '../schemas/documents.ts'
import { bodyOf, type Cut, cutSearch, numberOf } from './cut-documents.ts'
import type { Search } from './elasticsearch.ts'
import { Refusal, unavailable } from './failures.ts'
import { SEARCH_TIME_MAX } from './limits.ts'
import { currentFilters, isVisible, type Position, type PositionReader, visibleFilter } from './position.ts'
import type { ListParameters } from './read-parameters.ts'

export type Page = { readonly position: Position; readonly cuts: readonly Cut[]; readonly hasMore: boolean }
export type ReadList = (org: string, kind: ListKind, parameters: ListParameters, signal: AbortSignal) => Promise<Page>

export const createReadList = (prefix: string, search: Search, readAt: PositionReader['readAt']): ReadList => {
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
    const cuts = cutSearch(await search(index, searchBody(kind, org, after, limit + 1, position), signal), index, org)
    if (cuts.length > limit + 1) throw unavailable('elasticsearch_too_many_hits')
    return { position, cuts: cuts.slice(0, limit), hasMore: cuts.length > limit }
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

const filtersOf = {
  reps: currentFilters,
  periods: currentFilters,
  payouts: currentFilters,
  payroll_files: (position: Position) => [visibleFilter(position)],
}

const searchBody = (kind: ListKind, org: string, after: number, size: number, position: Position): string => {
  const order = listOrder[kind]
  return JSON.stringify({
    size,
    track_total_hits: false,
    timeout: `${SEARCH_TIME_MAX}ms`,
    // The order of the index itself: a page ends where it is full instead of looking through the organization.
    sort: [{ org_id: 'asc' }, { [order]: 'asc' }],
    query: {
      bool: {
        filter: [{ term: { org_id: org } }, { range: { [order]: { gt: after } } }, ...filtersOf[kind](position)],
      },
    },
  })
}
