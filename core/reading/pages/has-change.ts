/**
 * In: an organization, an offset, a position and perhaps a filter. Out: whether the feed has a change after the offset,
 *   before the position.
 * Can go wrong: Elasticsearch cannot answer completely → `unavailable`.
 */
import type { ListFilter } from '../../../schemas/lists.ts'
import {
  anyHit,
  type ReadPosition,
  type ReadScope,
  type ScopedSearch,
  searchSmall,
  visibleRange,
} from '../../store/index.ts'
import { kindsOf, termsOf } from './read-list.ts'

export type HasChange = (
  scope: ReadScope,
  position: ReadPosition,
  after: number,
  filter?: ListFilter,
) => Promise<boolean>

/** Creates the search for a change. @throws Refusal `unavailable` */
export const createHasChange = (search: ScopedSearch): HasChange => {
  return async (scope, position, after, filter = {}) => {
    const where = position.generation.layout.searchOf(kindsOf('changes', filter), scope.org)
    const terms = termsOf(filter)
    const range = { range: { seq: { gt: after, ...visibleRange(position) } } }
    const body = {
      size: 1,
      _source: false,
      terminate_after: 1,
      query: { bool: { filter: [...where.filters, ...terms, range] } },
    }
    return anyHit(await searchSmall(search, where, body, scope))
  }
}
