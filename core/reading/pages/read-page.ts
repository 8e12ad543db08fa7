/**
 * In: a list of an organization at a position (or its changes, or the payouts of a rep for a period), and the sort
 *   value after which to begin. Out: at most `limit` of its documents, in order, and whether more follow.
 * Promises: what is visible at the position (payouts, reps and periods: current), without a gap. A page ends early if
 *   its records are large, never before the first one. The fields of a filter never change in a record, so a record
 *   that matches always matches, and a cursor stays valid under any filter.
 * Can go wrong: Elasticsearch cannot answer completely → `unavailable`. The generation cannot be searched by deal →
 *   `invalid_request`, never an empty list.
 *
 * A record may have 8 MiB, and no indexed field has its size. So the number of requested records depends on the last
 * records of the organization: few at first, and all once its records are known to be small. If an answer is too large,
 * it is dropped and few records are requested again. It is the same if Elasticsearch answers 429, because it may lack
 * the memory for many. If it refuses the few, too, the request is refused.
 */
import { LRUCache } from 'lru-cache'
import { PAGE_BYTES_MAX } from '../../../schemas/limits.ts'
import { type ListFilter, listFilters, listOrder, listTraits } from '../../../schemas/lists.ts'
import { keysOf } from '../../../schemas/objects.ts'
import type { ListKind } from '../../../schemas/stored/documents.ts'
import type { GenerationLayout, SearchTarget } from '../../../schemas/stored/layout.ts'
import { atMost, Refusal, unavailable } from '../../runtime/index.ts'
import {
  ANSWER_BYTES_MAX,
  BODY_STORED_MAX,
  type DocumentSlice,
  type Hit,
  notReplacedRange,
  ORGANIZATIONS_REMEMBERED,
  RECORD_FRAME_BYTES,
  type ReadPosition,
  type ReadScope,
  type ScopedSearch,
  SEARCH_TIME_MAX,
  sliceSearch,
  UNKNOWN_ANSWER_BYTES,
  visibleRange,
} from '../../store/index.ts'
import { LARGE_RECORDS_ASKED, PLAIN_RECORD_BYTES_MAX } from '../limits.ts'

type PageAsked = {
  readonly list: ListName
  readonly where: SearchTarget<ListKind>
  /** Only payouts of this rep and period, replaced ones included. */
  readonly chain?: { readonly rep_id: string; readonly period_id: string }
  /** Only records with these values. */
  readonly filter?: ListFilter
  /** The sort value after which the page begins; -1 for the first page. */
  readonly after: number
  readonly limit: number
  readonly position: ReadPosition
  /** Bytes of records at which the page ends. */
  readonly bytesMax?: number
}
/** A list of records, or the feed of changes: every record and version, in the order of their events. */
export type ListName = ListKind | 'changes'
type PageRead = { readonly hits: readonly Hit[]; readonly hasMore: boolean }
export type ReadPage = (scope: ReadScope, asked: PageAsked) => Promise<PageRead>

/** Creates the search for one page. It remembers the largest record of the last page: by list, organization, filter. */
export const createReadPage = (search: ScopedSearch): ReadPage => {
  const lastSeen = new LRUCache<string, number>(atMost(ORGANIZATIONS_REMEMBERED))

  return async (scope, asked) => {
    const { org } = scope
    const { list, where, limit, bytesMax = PAGE_BYTES_MAX } = asked
    // Records of one rep say little about those of another one.
    const cacheKey = [list, org, ...Object.values(asked.filter ?? {})].join(':')
    const hits: Hit[] = []
    let bytes = 0
    let after = asked.after
    /** Maximum records of the next search: few after an answer that was too large, then twice as many each time. */
    let sizeMax = Number.POSITIVE_INFINITY
    for (;;) {
      const seen = lastSeen.get(cacheKey)
      const size = Math.min(limit + 1 - hits.length, fitting(seen ?? LARGEST[list], bytesMax - bytes), sizeMax)
      const expected = seen === undefined ? UNKNOWN_ANSWER_BYTES : expectedBytes(seen, size)
      const answer = await search(where, searchBody(asked, after, size), scope, expected).catch(error => {
        // Perhaps the answer was larger than what may be held. The next request must not ask for as much again.
        lastSeen.delete(cacheKey)
        throw error
      })
      if (typeof answer === 'string') {
        if (size <= LARGE_RECORDS_ASKED) throw unavailable(`elasticsearch_${answer}`)
        lastSeen.set(cacheKey, BODY_STORED_MAX)
        sizeMax = LARGE_RECORDS_ASKED
        continue
      }
      const found = sliceSearch(answer, where.records, org)
      if (found.length > size) throw unavailable('elasticsearch_too_many_hits')
      for (const hit of found) {
        bytes += lengthOf(hit)
        if (bytes > bytesMax && hits.length > 0) return { hits: hits.slice(0, limit), hasMore: true }
        hits.push(hit)
      }
      const last = found.at(-1)
      if (last) lastSeen.set(cacheKey, Math.max(...found.map(lengthOf)))
      if (!last || found.length < size || hits.length > limit) {
        return { hits: hits.slice(0, limit), hasMore: hits.length > limit }
      }
      after = last.sortValue
      sizeMax *= 2
    }
  }
}

/** Maximum bytes of a record in each list. */
const LARGEST = {
  reps: PLAIN_RECORD_BYTES_MAX,
  periods: PLAIN_RECORD_BYTES_MAX,
  payouts: BODY_STORED_MAX,
  payroll_files: PLAIN_RECORD_BYTES_MAX,
  changes: BODY_STORED_MAX,
} as const satisfies Record<ListName, number>

const lengthOf = ({ bodyStart, bodyEnd }: DocumentSlice): number => bodyEnd - bodyStart

/** Returns how many records of this size fill the room left on a page, plus the one after. */
const fitting = (bytes: number, room: number): number => Math.ceil(room / bytes) + 1

const expectedBytes = (largest: number, size: number): number =>
  Math.min(size * (largest + RECORD_FRAME_BYTES), ANSWER_BYTES_MAX)

const searchBody = ({ list, where, chain, filter, position }: PageAsked, after: number, size: number): string => {
  const order = list === 'changes' ? 'seq' : listOrder[list]
  const afterRange = { gt: after }
  const visible = visibleRange(position)
  const ranges: Record<string, object>[] =
    order === 'seq' ? [{ seq: { ...afterRange, ...visible } }] : [{ [order]: afterRange }, { seq: visible }]
  // The feed and a chain contain replaced records.
  if (list !== 'changes' && listTraits[list].isReplaced && !chain)
    ranges.push({ until_seq: notReplacedRange(position) })
  const terms = termsOf({ ...chain, ...filter })
  return JSON.stringify({
    size,
    track_total_hits: false,
    timeout: `${SEARCH_TIME_MAX}ms`,
    // The index is sorted by organization, then by this field: Elasticsearch skips what lies after a full page.
    sort: [{ [order]: 'asc' }],
    query: { bool: { filter: [...where.filters, ...terms, ...ranges.map(range => ({ range }))] } },
  })
}

/** Returns the conditions of a search. */
export const termsOf = (filter: ListFilter): object[] =>
  keysOf(filter).map(name => ({ term: { [listFilters[name].field]: filter[name] } }))

/** @throws Refusal `invalid_request` if the generation cannot be searched by deal */
export const requireSearchable = (filter: ListFilter, { hasDeals }: Pick<GenerationLayout, 'hasDeals'>): void => {
  if (filter.deal_id === undefined || hasDeals) return
  const message = [
    '`deal_id` cannot be used yet: an older version made the stored payouts, and they cannot be searched by deal.',
    'It can be used after the next rebuild of the projection.',
  ].join(' ')
  throw new Refusal('invalid_request', { message })
}
