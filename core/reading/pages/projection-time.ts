/**
 * In: an organization, the position its page was read at, and whether it is known to have records. Out: the instant up
 *   to which everything published for the organization is included.
 * Promises: the time of its partition. For an organization without records, the oldest time of all partitions, so that
 *   nobody can tell which partition is idle.
 */
import { LRUCache } from 'lru-cache'
import { listKinds } from '../../../schemas/stored/documents.ts'
import type { SearchTarget } from '../../../schemas/stored/layout.ts'
import { atMost } from '../../runtime/index.ts'
import {
  anyHit,
  type PositionReader,
  type ReadPosition,
  type ReadScope,
  type ScopedSearch,
  searchSmall,
  visibleRange,
} from '../../store/index.ts'
import { ORGANIZATIONS_REMEMBERED } from '../limits.ts'

export type ProjectionTime = (
  scope: ReadScope,
  position: ReadPosition,
  /** Whether the caller found records of the organization. */
  found: 'records' | 'unknown',
) => Promise<number>

/** Creates the reader of the time, in milliseconds since 1970, up to which an answer is complete. */
export const createProjectionTime = (
  search: ScopedSearch,
  oldestTime: PositionReader['oldestTime'],
): ProjectionTime => {
  const withRecords = new LRUCache<string, true>(atMost(ORGANIZATIONS_REMEMBERED))

  const hasRecords = async (scope: ReadScope, position: ReadPosition): Promise<boolean> => {
    const where = position.generation.layout.searchOf(listKinds, scope.org)
    return anyHit(await searchSmall(search, where, anyRecordBody(where, position), scope))
  }

  return async (scope, position, found) => {
    const { org } = scope
    if (found === 'records') withRecords.set(org, true)
    if (withRecords.get(org)) return position.time
    // Never later than the page: the first records may have been published after it.
    if (!(await hasRecords(scope, position)))
      return Math.min(position.time, await oldestTime(position.generation, scope))
    withRecords.set(org, true)
    return position.time
  }
}

const anyRecordBody = ({ filters }: SearchTarget, position: ReadPosition): object => ({
  size: 1,
  _source: false,
  terminate_after: 1,
  query: { bool: { filter: [...filters, { range: { seq: visibleRange(position) } }] } },
})
