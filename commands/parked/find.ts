/**
 * Finds parked records: by what is indexed of them, or one by its position. Asks for their bytes only where they are
 * wanted.
 */

import { type Elasticsearch, multiGet } from '../../projector/elasticsearch/client.ts'
import type { RawRecord } from '../../projector/event/raw-record.ts'
import { StopError } from '../../projector/failures.ts'
import { encodeHeaders } from '../../projector/kafka/patch-headers.ts'
import { type ParkCode, parkCodes } from '../../schemas/errors.ts'
import { type ParkedDocument, parkedId } from '../../schemas/stored/documents.ts'
import { SEARCH_HITS } from '../limits.ts'
import type { Live, LiveStream } from '../live.ts'

/** Which parked records are meant: those that fit everything that is said. */
export type Filter = {
  readonly code?: readonly ParkCode[]
  readonly org?: string
  readonly topic?: string
  readonly partition?: number
  readonly type?: string
}
export type Order = 'oldest' | 'newest'

/**
 * What is known of a parked record without its bytes: what is indexed of it, so that Elasticsearch need not load a
 * record to say it.
 */
export type ParkedFields = Omit<ParkedDocument, 'body' | 'body_bytes'>
const indexed = ['code', 'org_id', 'type', 'event_id', 'topic', 'partition', 'offset', 'at'] as const
/** Where a record lies in Kafka: what an operator names it by. */
export type Position = Pick<ParkedDocument, 'topic' | 'partition' | 'offset'>

type Send = Elasticsearch['send']

export const positionOf = ({ topic, partition, offset }: Position): string => parkedId(topic, partition, offset)

/**
 * In order of their time in Kafka, and within a partition always of their position; at most `limit`.
 * @returns how many there are, and those
 */
export const findParked = async (
  send: Send,
  live: Live,
  filter: Filter,
  order: Order,
  limit: number,
): Promise<{ readonly total: number; readonly records: ParkedFields[] }> => {
  await refresh(send, live)
  const direction = order === 'oldest' ? 'asc' : 'desc'
  const records: ParkedFields[] = []
  let total = 0
  for (let after: unknown[] | undefined; records.length < limit; ) {
    const size = Math.min(SEARCH_HITS, limit - records.length)
    const { hits } = await search(send, live, {
      size,
      query: queryOf(filter),
      sort: ['at', 'topic', 'partition', 'offset'].map(field => ({ [field]: direction })),
      _source: false,
      docvalue_fields: indexed,
      track_total_hits: true,
      ...(after && { search_after: after }),
    })
    total = hits.total.value
    for (const { fields } of hits.hits) records.push(toFields(fields))
    after = hits.hits.at(-1)?.sort
    if (hits.hits.length < size) break
  }
  return { total, records }
}

/**
 * How many there are of each code, in the order of the contract's table; codes that nothing was parked for are left
 * out.
 */
export const countParked = async (send: Send, live: Live, filter: Filter): Promise<[ParkCode, number][]> => {
  await refresh(send, live)
  const { aggregations } = await search(send, live, {
    size: 0,
    query: queryOf(filter),
    aggs: { codes: { terms: { field: 'code', size: parkCodes.length } } },
  })
  const counts = new Map(aggregations?.codes.buckets.map(({ key, doc_count }) => [key, doc_count]))
  return parkCodes.flatMap((code): [ParkCode, number][] => {
    const count = counts.get(code)
    return count === undefined ? [] : [[code, count]]
  })
}

/**
 * A parked record with its bytes; without them, and with what stands in their place, where they were too large to be
 * kept.
 */
export type Parked = {
  readonly fields: ParkedFields
  readonly record: RawRecord
  readonly leftOut: ParkedDocument['body']['left_out']
}

/** Reads records by their positions, in the order asked, as they were last written; undefined where none is parked. */
export const readParked = async (
  send: Send,
  live: Live,
  positions: readonly Position[],
): Promise<(Parked | undefined)[]> => {
  const indexOf = (topic: string): string => streamOf(live, topic)?.parkedIndex ?? live.events.parkedIndex
  const docs = positions.map(position => ({ _index: indexOf(position.topic), _id: positionOf(position) }))
  const found: (Parked | undefined)[] = []
  // An answer holds the first of them, as many as are not too large together.
  while (found.length < docs.length) {
    for (const document of await multiGet(send, docs.slice(found.length))) {
      found.push(document.found ? toParked(document._source as ParkedDocument) : undefined)
    }
  }
  return found
}

/** The stream that a topic carries. */
export const streamOf = (live: Live, topic: string): LiveStream | undefined =>
  Object.values(live).find(({ identity }) => identity.topic === topic)

const toParked = ({ body, body_bytes: _, ...fields }: ParkedDocument): Parked => {
  const bytes = (base64: string | null): Buffer | null => (base64 === null ? null : Buffer.from(base64, 'base64'))
  const headers = encodeHeaders(
    body.headers.map(([name, value, rawName]) => {
      const header = [name, bytes(value)] as const
      return rawName === undefined ? header : [...header, Buffer.from(rawName, 'base64')]
    }),
  )
  const { offset, at: timestamp } = fields
  const record = { offset, timestamp, key: bytes(body.key), headers, value: bytes(body.value) }
  return { fields, record, leftOut: body.left_out }
}

const queryOf = ({ code, ...terms }: Filter): object => ({
  bool: {
    filter: [
      ...(code === undefined ? [] : [{ terms: { code } }]),
      ...Object.entries(terms).flatMap(([name, value]) =>
        value === undefined ? [] : [{ term: { [name === 'org' ? 'org_id' : name]: value } }],
      ),
    ],
  },
})

const indicesOf = (live: Live): string =>
  Object.values(live)
    .map(({ parkedIndex }) => parkedIndex)
    .join()

/** Nobody searches these indices but an operator: they are refreshed when one does. */
const refresh = async (send: Send, live: Live): Promise<void> => {
  const { status, body } = await send({ method: 'POST', path: `/${indicesOf(live)}/_refresh` })
  assertWhole('a refresh', status, body)
}

/** A list of one value each; nothing for what a record does not have. */
type Indexed = Readonly<Record<string, readonly unknown[]>>
const toFields = (fields: Indexed): ParkedFields =>
  Object.fromEntries(indexed.flatMap(name => (fields[name] ? [[name, fields[name][0]]] : []))) as ParkedFields

type Answer = {
  readonly hits: {
    readonly total: { readonly value: number }
    readonly hits: readonly { readonly fields: Indexed; readonly sort: unknown[] }[]
  }
  readonly aggregations?: { readonly codes: { readonly buckets: readonly { key: ParkCode; doc_count: number }[] } }
}

const search = async (send: Send, live: Live, query: object): Promise<Answer> => {
  const { status, body } = await send({
    method: 'POST',
    path: `/${indicesOf(live)}/_search`,
    query: { allow_partial_search_results: false },
    body: query,
  })
  assertWhole('a search', status, body)
  return body as Answer
}

/** Part of the parked records is not an answer to how many there are. */
const assertWhole = (what: string, status: number, body: unknown): void => {
  const { _shards, timed_out } = body as { _shards?: { failed: number }; timed_out?: boolean }
  if (status === 200 && _shards?.failed === 0 && timed_out !== true) return
  throw new StopError('index_missing', `${what} of parked records is answered ${status}, not whole`)
}
