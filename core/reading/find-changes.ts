/**
 * The searches of a wait. In: an organization, a cursor of its feed and perhaps filters. Out: whether a change follows
 * the cursor, or the last change of each filter.
 * Can go wrong: Elasticsearch cannot answer completely → `unavailable`.
 */
import { filteredKinds, type ListFilter } from '../../schemas/lists.ts'
import { unavailable } from '../runtime/index.ts'
import {
  type ReadPosition,
  type ReadScope,
  type ScopedSearch,
  searchSmall,
  smallSearch,
  visibleRange,
} from '../store/index.ts'
import type { HasChange } from './pages/has-change.ts'
import { type ReaderParts, readListStart, requireSearchable, termsOf } from './pages/read-list.ts'
import type { ListParameters } from './pages/read-parameters.ts'

export type ChangesAsked = Pick<ListParameters, 'startingAfter' | 'filter'>

/** Returns whether there is a change after a cursor, and the position up to which that is known. */
export type FindChange = (scope: ReadScope, asked: ChangesAsked) => Promise<ChangeFound>
type ChangeFound = { readonly found: boolean; readonly position: ReadPosition }

/** Returns, for each filter, the offset of the last change that it matches, from an offset up to a position. */
export type FindLast = (
  scope: ReadScope,
  filters: readonly ListFilter[],
  from: number,
  position: ReadPosition,
) => Promise<readonly (number | undefined)[]>

type Parts = Pick<ReaderParts, 'readAt' | 'cursors' | 'positionAsOf'>

/** Creates the search for a change after a cursor. @throws Refusal as a list does */
export const createFindChange = (parts: Parts, hasChange: HasChange): FindChange => {
  return async (scope, { startingAfter, filter = {} }) => {
    const { position, cursorValue: after = -1 } = await readListStart(parts, scope, { startingAfter, asOf: undefined })
    requireSearchable(filter, position.generation.layout)
    return { position, found: await hasChange(scope, position, after, filter) }
  }
}

/** Creates the search that serves all filters of an organization. */
export const createFindLast = (search: ScopedSearch): FindLast => {
  return async (scope, filters, from, position) => {
    const where = position.generation.layout.searchOf(filteredKinds, scope.org)
    const ofFilters = filters.map(filter => ({ bool: { filter: termsOf(filter) } }))
    const aggs = { filters: { filters: { filters: ofFilters }, aggs: { last: { max: { field: 'seq' } } } } }
    const range = { range: { seq: { gte: from, ...visibleRange(position) } } }
    const body = { size: 0, query: { bool: { filter: [...where.filters, range] } }, aggs }
    const { aggregations } = smallSearch<LastOfFilters>(await searchSmall(search, where, body, scope))
    const { buckets } = aggregations.filters
    if (buckets.length !== filters.length) throw unavailable('elasticsearch_malformed_search')
    return buckets.map(({ last }) => last.value ?? undefined)
  }
}

type LastOfFilters = {
  readonly filters: { readonly buckets: readonly { readonly last: { readonly value: number | null } }[] }
}
