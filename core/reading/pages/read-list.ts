/**
 * In: an organization, a list and its parameters, a filter among them. Out: the documents of one page, in order,
 *   whether more follow, and the position they were read at.
 * Promises: exactly what is visible at the position (payouts, reps, periods: current), after the cursor, in the list's
 *   order, without a gap. A page ends early if its records are large, never before the first one. The fields of a
 *   filter never change in a record, so a record that matches always matches, and a cursor stays valid under any
 *   filter.
 * Can go wrong: a cursor that names nothing visible in this list → `invalid_cursor`, the same for an unknown one and
 *   another organization's; in other words for `after` beyond the last change. Elasticsearch cannot answer completely →
 *   `unavailable`. The generation cannot be searched by deal → `invalid_request`, never an empty list.
 *
 * `createReadPage` searches for the records of a page, also of a history and of totals. A record may have 8 MiB, and no
 * indexed field has its size. So the number of requested records depends on the last records of the organization: few
 * at first, and all once its records are known to be small. If an answer is too large, it is dropped and few records
 * are requested again. It is the same if Elasticsearch answers 429, because it may lack the memory for many. If it
 * refuses the few, too, the request is refused.
 */
import { LRUCache } from 'lru-cache'
import { PAGE_BYTES_MAX } from '../../../schemas/limits.ts'
import { filteredKinds, type ListFilter, listFilters, listOrder, listTraits } from '../../../schemas/lists.ts'
import { keysOf } from '../../../schemas/objects.ts'
import { type ListKind, listKinds } from '../../../schemas/stored/documents.ts'
import type { GenerationLayout, SearchTarget } from '../../../schemas/stored/layout.ts'
import { lruOptions, Refusal, unavailable } from '../../runtime/index.ts'
import {
  ANSWER_BYTES_MAX,
  anyHit,
  BODY_STORED_MAX,
  type DocumentSlice,
  type Hit,
  idOf,
  isVisible,
  notReplacedRange,
  numberOf,
  ORGANIZATIONS_REMEMBERED,
  type PositionReader,
  RECORD_FRAME_BYTES,
  type ReadPosition,
  type ReadScope,
  type ScopedSearch,
  SEARCH_TIME_MAX,
  searchSmall,
  sliceSearch,
  UNKNOWN_ANSWER_BYTES,
  visibleRange,
} from '../../store/index.ts'
import { LARGE_RECORDS_ASKED, PLAIN_RECORD_BYTES_MAX } from '../limits.ts'
import { type Cursors, readNamed } from './cursors.ts'
import type { ListName, ListParameters, Moment, RecordName } from './read-parameters.ts'
import type { Sequences } from './sequences.ts'

export type Page = {
  readonly position: ReadPosition
  readonly hits: readonly Hit[]
  readonly hasMore: boolean
  /** Of changes: the sequence of each hit. */
  readonly sequences?: readonly number[]
  /** Of changes: the change after which the page begins, if its sequence was given. */
  readonly begin?: RecordName
}
export type ListAsked = ListParameters & { readonly list: ListName }
export type ReadList = (scope: ReadScope, asked: ListAsked) => Promise<Page>

/** @param changeOffset offset of the change that `as_of` names, if the change exists */
export type PositionAsOf = (
  scope: ReadScope,
  position: ReadPosition,
  asOf: Moment | undefined,
  changeOffset: number | undefined,
) => Promise<ReadPosition>

export type ProjectionTime = (
  scope: ReadScope,
  position: ReadPosition,
  /** Whether the caller found records of the organization. */
  found: 'records' | 'unknown',
) => Promise<number>

/** The parts that the readers of lists, records, histories and totals share. */
export type ReaderParts = {
  readonly readAt: PositionReader['readAt']
  readonly readPage: ReadPage
  readonly projectionTime: ProjectionTime
  readonly cursors: Cursors
  readonly positionAsOf: PositionAsOf
  readonly sequences: Sequences
}

/** Where a page begins, with two positions of the organization: the present one, and that of the requested moment. */
type ListStart = {
  readonly current: ReadPosition
  readonly position: ReadPosition
  /** The sort value of the cursor; undefined without a cursor. */
  readonly cursorValue: number | undefined
}
type StartAsked = Pick<ListParameters, 'startingAfter' | 'asOf'>

/**
 * Reads where a page begins: at the position, after the cursor. Without a cursor and a change, only the position is
 * read.
 * @throws Refusal `invalid_cursor` if the cursor names nothing visible
 */
export const readListStart = async (
  parts: Pick<ReaderParts, 'readAt' | 'cursors' | 'positionAsOf'>,
  scope: ReadScope,
  { startingAfter, asOf }: StartAsked,
): Promise<ListStart> => {
  const names = [startingAfter, asOf?.kind === 'change' ? asOf.name : undefined]
  const { position: current, sortValues } = await readNamed(parts, scope, {
    names,
    documentsOf: () => [],
    freshness: 'may-be-older',
  })
  const [cursorValue, change] = sortValues
  // Without `as_of`, this is `current`.
  const position = await parts.positionAsOf(scope, current, asOf, change)
  if (startingAfter !== undefined && (cursorValue === undefined || !isVisible(cursorValue, position))) {
    throw new Refusal('invalid_cursor')
  }
  return { current, position, cursorValue }
}

/** Returns the kinds of records in a list. A filtered feed leaves reps and periods out. */
export const kindsOf = (list: ListName, filter: ListFilter): readonly ListKind[] => {
  if (list !== 'changes') return [list]
  return Object.keys(filter).length > 0 ? filteredKinds : listKinds
}

/** Creates the reader of lists and of changes. */
export const createReadList = (parts: ReaderParts): ReadList => {
  const { readPage, projectionTime, cursors, sequences } = parts
  return async (scope, { list, limit, startingAfter, after: sequence, asOf, filter = {} }) => {
    const { current, position, cursorValue } = await readListStart(parts, scope, { startingAfter, asOf })
    const { generation } = current
    requireSearchable(filter, generation.layout)
    const begin = sequence ? await sequences.changeAt(scope, position, sequence) : undefined
    if (sequence && begin === undefined) throw beyondLast()
    const beginsAfter = begin?.seq ?? cursorValue
    const where = generation.layout.searchOf(kindsOf(list, filter), scope.org)
    const asked = { list, where, filter, after: beginsAfter ?? -1, limit, position }
    const { hits, hasMore } = await readPage(scope, asked)
    const isWhole = Object.keys(filter).length === 0
    const numbered = list === 'changes' && {
      sequences: await sequences.of(scope, position, {
        before: beginsAfter ?? -1,
        seqs: hits.map(({ sortValue }) => sortValue),
        isWhole,
      }),
      ...(begin && { begin: begin.name }),
    }

    const last = hits.at(-1)
    if (last) cursors.remember(scope.org, current, nameOf(last, list), last.sortValue)
    // The time of the position. Only an organization that may have no records costs a search, and gets the oldest time.
    const time = await projectionTime(scope, current, last || beginsAfter !== undefined ? 'records' : 'unknown')
    return { position: { ...position, time }, hits, hasMore, ...numbered }
  }
}

const beyondLast = (): Refusal =>
  new Refusal('invalid_cursor', {
    message: '`after` is above the number of changes of this organization, or of those up to `as_of`.',
  })

/**
 * Creates the reader of the time, in milliseconds since 1970, up to which an answer is complete: that of the partition.
 * For an organization without records it is the oldest time of all partitions, so that nobody can tell which partition
 * is idle.
 */
export const createProjectionTime = (
  search: ScopedSearch,
  oldestTime: PositionReader['oldestTime'],
): ProjectionTime => {
  const withRecords = new LRUCache<string, true>(lruOptions(ORGANIZATIONS_REMEMBERED))

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

/** Returns the sequence of a change of a page. */
export const sequenceIn = ({ sequences }: Pick<Page, 'sequences'>, at: number): number => {
  const sequence = sequences?.[at]
  if (sequence === undefined) throw new Error('a page of changes has no sequences')
  return sequence
}

/** Returns the record's id. A document's id is `org:id`, or `org:id:offset` for a version. */
export const recordIdOf = (hit: Hit): string => idOf(hit).split(':')[0] ?? ''

/** Returns the name that a client uses for a hit of a list. */
const nameOf = (hit: Hit, list: ListName): RecordName =>
  list === 'changes' ? changeNameOf(hit) : { kind: list, id: recordIdOf(hit) }

/** Returns the name of the change that a hit of the feed is. */
export const changeNameOf = (hit: Hit): RecordName => {
  const { kind } = hit
  const id = recordIdOf(hit)
  return listTraits[kind].hasVersions ? { kind, id, ordinal: numberOf(hit, 'ordinal') } : { kind, id }
}

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
type PageRead = { readonly hits: readonly Hit[]; readonly hasMore: boolean }
export type ReadPage = (scope: ReadScope, asked: PageAsked) => Promise<PageRead>

/** Creates the search for one page. It remembers the largest record of the last page: by list, organization, filter. */
export const createReadPage = (search: ScopedSearch): ReadPage => {
  const lastSeen = new LRUCache<string, number>(lruOptions(ORGANIZATIONS_REMEMBERED))

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

/**
 * Returns the body of a search. `GET /api/v1/payouts?rep_id=rep_1&limit=50` of `org_1`, after seq 41, at position 90:
 *
 *   POST /commission-g1-payouts/_search?allow_partial_search_results=false&routing=org_1
 *   { size: 51, track_total_hits: false, timeout: '2500ms', sort: [{ seq: 'asc' }], query: { bool: { filter: [
 *     { terms: { kind: ['payouts'] } }, { term: { org_id: 'org_1' } }, { term: { rep_id: 'rep_1' } },
 *     { range: { seq: { gt: 41, lt: 90 } } }, { range: { until_seq: { gte: 90 } } } ] } } }
 *
 * The index of payouts has the records of all lists (`searchOf`); layout 1 has no `kind` and no routing. The record
 * after the 50 says that more follow. The size is smaller while the records of the organization may be large.
 */
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
