/** Finds parked records by their indexed fields, or one by its position. Reads their bytes only for `readParked`. */

import { detailOf, needsRecord, type RawRecord } from '../../core/ledger/index.ts'
import { toRawRecord } from '../../core/log/index.ts'
import {
  type Coverage,
  firstKeyRulesUntil,
  multiGet,
  type SearchAnswer,
  type Send,
  type TermsAnswer,
  type Total,
} from '../../core/store/index.ts'
import { type ParkCode, parkCodes } from '../../schemas/errors.ts'
import { EVENT_TIME_AHEAD_MAX_MS } from '../../schemas/limits.ts'
import { type ParkedDocument, parkedId } from '../../schemas/stored/documents.ts'
import type { GenerationLayout } from '../../schemas/stored/layout.ts'
import { assertRefreshed, wholeAnswer } from '../documents/shards.ts'
import { CHUNK_RECORDS, SEARCH_HITS } from '../limits.ts'
import type { Live, LiveStream } from '../live.ts'

/** Selects the parked records that match all given fields: of a list, one of its values. */
export type Filter = {
  readonly code?: readonly ParkCode[]
  readonly org?: string | readonly string[]
  readonly topic?: string
  readonly partition?: number
  readonly type?: string | readonly string[]
}
export type Order = 'oldest' | 'newest'

/** The indexed fields of a parked record. Elasticsearch returns them without loading the record. */
export type ParkedFields = Omit<ParkedDocument, 'body' | 'body_bytes'>
const indexed = ['code', 'org_id', 'type', 'event_id', 'topic', 'partition', 'offset', 'at'] as const
/** The location of a record in Kafka, by which an operator names it. */
export type RecordPosition = Pick<ParkedDocument, 'topic' | 'partition' | 'offset'>

export const positionOf = ({ topic, partition, offset }: RecordPosition): string => parkedId(topic, partition, offset)

/** Which parked records, and in which order. */
export type WantedRecords = {
  readonly filter: Filter
  readonly order: Order
  /** Only those behind this record. */
  readonly after?: ParkedFields | undefined
  /** Milliseconds since 1970. */
  readonly now: number
}

/** Publishers choose the time of a record: one ahead of the clock says nothing. */
export const isAhead = (at: number, now: number): boolean => at > now + EVENT_TIME_AHEAD_MAX_MS

/** `total`: the number of all matches. `ahead`: how many of them have a time ahead of the clock. */
type Page = { readonly total: number; readonly ahead: number; readonly records: readonly ParkedFields[] }

/** Yields the matches in order of time, then of position. Times ahead of the clock are last in any order. */
async function* pagesOfParked(
  send: Send,
  live: Live,
  wanted: WantedRecords,
  limit = Number.POSITIVE_INFINITY,
): AsyncGenerator<Page> {
  const { filter, order, after, now } = wanted
  await refreshParkedRecords(send, live)
  const direction = order === 'oldest' ? 'asc' : 'desc'
  const ahead = { range: { at: { gt: now + EVENT_TIME_AHEAD_MAX_MS } } }
  for (let [behind, left] = [after, limit]; ; ) {
    const size = Math.min(SEARCH_HITS, left)
    const { hits, aggregations } = await search<SearchAnswer<Hit> & Total & Aggregated>(send, live, {
      size,
      query: queryOf(filter, { bool: { must_not: ahead } }),
      sort: [{ _score: 'desc' }, ...sortFields.map(field => ({ [field]: direction }))],
      _source: false,
      docvalue_fields: indexed,
      track_total_hits: true,
      aggs: { ahead: { filter: ahead } },
      ...(behind && { search_after: [isAhead(behind.at, now) ? 0 : 1, ...sortFields.map(field => behind?.[field])] }),
    })
    const records = hits.hits.map(({ fields }) => toFields(fields))
    yield { total: hits.total.value, ahead: aggregations.ahead.doc_count, records }
    left -= records.length
    behind = records.at(-1)
    if (records.length < size || left === 0) return
  }
}
const positionFields = ['topic', 'partition', 'offset'] as const
const sortFields = ['at', ...positionFields] as const
type Aggregated = { readonly aggregations: { readonly ahead: { readonly doc_count: number } } }

/**
 * Yields the matches as of the last refresh, in the order of their positions, which is that of the log within a
 * partition.
 * @param size of a page
 */
export async function* pagesInOrder(
  { send, live, signal }: { readonly send: Send; readonly live: Live; readonly signal: AbortSignal },
  filter: Filter,
  size = SEARCH_HITS,
): AsyncGenerator<readonly ParkedFields[]> {
  for (let behind: ParkedFields | undefined; ; ) {
    signal.throwIfAborted()
    const { hits } = await search<SearchAnswer<Hit>>(send, live, {
      size,
      query: queryOf(filter),
      sort: positionFields.map(field => ({ [field]: 'asc' })),
      _source: false,
      docvalue_fields: indexed,
      ...(behind && { search_after: positionFields.map(field => behind?.[field]) }),
    })
    const records = hits.hits.map(({ fields }) => toFields(fields))
    yield records
    behind = records.at(-1)
    if (records.length < size) return
  }
}

/** Returns the first `limit` matches. */
export const findParked = async (send: Send, live: Live, wanted: WantedRecords, limit: number): Promise<Page> => {
  const records: ParkedFields[] = []
  let counts = { total: 0, ahead: 0 }
  for await (const page of pagesOfParked(send, live, wanted, limit)) {
    counts = page
    records.push(...page.records)
  }
  return { ...counts, records }
}
/** Returns the number of records by code, in the order of `parkCodes`, without codes that have none. */
export const countParked = async (send: Send, live: Live, filter: Filter): Promise<[ParkCode, number][]> => {
  await refreshParkedRecords(send, live)
  const { aggregations } = await search<TermsAnswer<'codes', ParkCode>>(send, live, {
    size: 0,
    query: queryOf(filter),
    aggs: { codes: { terms: { field: 'code', size: parkCodes.length } } },
  })
  const counts = new Map(aggregations.codes.buckets.map(({ key, doc_count }) => [key, doc_count]))
  return parkCodes.flatMap((code): [ParkCode, number][] => {
    const count = counts.get(code)
    return count === undefined ? [] : [[code, count]]
  })
}

/** Returns the partitions of a stream that have matches as of the last refresh. */
export const partitionsOfParked = async (
  send: Send,
  live: Live,
  { identity: { topic, partitions } }: LiveStream,
  filter: Filter,
): Promise<number[]> => {
  const { aggregations } = await search<TermsAnswer<'partitions', number>>(send, live, {
    size: 0,
    query: queryOf({ ...filter, topic }),
    aggs: { partitions: { terms: { field: 'partition', size: partitions } } },
  })
  return aggregations.partitions.buckets.map(({ key }) => key).sort((a, b) => a - b)
}

/** A parked record with its bytes. A record too large to be kept has `leftOut` (length and hash) instead. */
export type Parked = {
  readonly fields: ParkedFields
  readonly record: RawRecord
  readonly leftOut: ParkedDocument['body']['left_out']
}

/** Why the Kafka client cannot send a record unchanged; undefined if it can. */
export const whyUnsendable = ({
  record,
  leftOut,
}: Parked): 'bytes_not_kept' | 'header_without_value' | 'header_name_not_utf8' | undefined => {
  if (leftOut) return 'bytes_not_kept'
  for (const [, value, rawName] of record.headers) {
    if (value === null) return 'header_without_value'
    if (rawName !== undefined) return 'header_name_not_utf8'
  }
  return undefined
}

/** Reads records by position, in the given order, in real time (no refresh); undefined for one that is not parked. */
export const readParked = (
  send: Send,
  live: Live,
  positions: readonly RecordPosition[],
): Promise<(Parked | undefined)[]> => Array.fromAsync(eachParked(send, live, positions))

/** The same, one after the other: holds the records of one answer at a time. */
export const eachParked = async function* (
  send: Send,
  live: Live,
  positions: readonly RecordPosition[],
): AsyncGenerator<Parked | undefined> {
  const layoutOf = (topic: string): GenerationLayout => (parkedStreamOf(live, topic) ?? live.events).layout
  const docs = positions.map(position => layoutOf(position.topic).addressOf('parked', positionOf(position)))
  // `multiGet` returns as many of the first documents as one answer holds.
  for (let count = 0; count < docs.length; ) {
    for (const document of await multiGet<ParkedDocument>(send, docs.slice(count, count + CHUNK_RECORDS))) {
      count++
      yield document.found ? toParked(document._source) : undefined
    }
  }
}

/** The detail of each record, by its position. */
export type Details = ReadonlyMap<string, string>

export const readDetails = async (send: Send, live: Live, records: readonly ParkedFields[]): Promise<Details> => {
  const details = new Map<string, string>()
  for (const fields of records) details.set(positionOf(fields), detailOfParked(live, { fields }))
  const read = records.filter(({ code }) => needsRecord(code))
  for await (const parked of eachParked(send, live, read)) {
    if (parked !== undefined) details.set(positionOf(parked.fields), detailOfParked(live, parked))
  }
  return details
}

/** Says why a record is parked; without its bytes, the rule of its code. */
export const detailOfParked = (
  live: Live,
  { fields, record, leftOut }: Partial<Parked> & Pick<Parked, 'fields'>,
): string => {
  const { stream, identity } = parkedStreamOf(live, fields.topic) ?? live.events
  const { code, partition } = fields
  const { partitions } = identity
  const firstRules = stream === 'api-keys' && { firstKeyRulesUntil: firstKeyRulesUntil(identity) }
  const source = { stream, partition, partitions, ...firstRules }
  return detailOf({ code, record: leftOut === undefined ? record : undefined, source })
}

export const parkedStreamOf = (live: Live, topic: string): LiveStream | undefined =>
  Object.values(live).find(({ identity }) => identity.topic === topic)

const toParked = (document: ParkedDocument): Parked => {
  const { body, body_bytes: _, ...fields } = document
  return { fields, record: toRawRecord(document), leftOut: body.left_out }
}

/** @param first matches of it have a score of 1, all others 0 */
const queryOf = (filter: Filter, first?: object): object => ({
  bool: {
    filter: [{ match_all: {} }, ...acceptedBy(filter).map(([field, values]) => ({ terms: { [field]: values } }))],
    ...(first && { should: { constant_score: { filter: first } } }),
  },
})

/** The fields that a filter names, with the values that it accepts. */
const acceptedBy = (filter: Filter): [field: keyof ParkedFields, values: readonly unknown[]][] =>
  Object.entries(filter).flatMap(([name, value]) =>
    value === undefined ? [] : [[name === 'org' ? 'org_id' : (name as keyof ParkedFields), [value].flat()]],
  )

/** Whether a search with this filter finds the record. */
export const matches = (fields: ParkedFields, filter: Filter): boolean =>
  acceptedBy(filter).every(([field, values]) => values.includes(fields[field]))

const indicesOf = (live: Live): string =>
  Object.values(live)
    .map(({ layout }) => layout.indexOf('parked'))
    .join()

/** Only operators search these indices, so each command refreshes them. */
export const refreshParkedRecords = async (send: Send, live: Live): Promise<void> => {
  assertRefreshed('the parked records', await send<Coverage>({ method: 'POST', path: `/${indicesOf(live)}/_refresh` }))
}

/** Lists of one value each; a field that the record does not have is missing. */
type Indexed = Readonly<Record<string, readonly unknown[]>>
const toFields = (fields: Indexed): ParkedFields =>
  Object.fromEntries(indexed.flatMap(name => (fields[name] ? [[name, fields[name][0]]] : []))) as ParkedFields

type Hit = { readonly fields: Indexed }

const search = async <Body extends Coverage>(send: Send, live: Live, query: object): Promise<Body> => {
  const answer = await send<Body>({
    method: 'POST',
    path: `/${indicesOf(live)}/_search`,
    query: { allow_partial_search_results: false },
    body: query,
  })
  return wholeAnswer('the parked records', answer)
}
