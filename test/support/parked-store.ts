/** Parked records in memory, for the searches of `commission parked`: by fields, in order, a page at a time. */
import type { Answer, Request } from '../../core/store/elasticsearch/client.ts'
import type { ParkCode } from '../../schemas/errors.ts'
import { type ParkedDocument, parkedId } from '../../schemas/stored/documents.ts'

type Asked = {
  readonly size: number
  readonly query: {
    readonly bool: {
      readonly filter: readonly { readonly terms?: Readonly<Record<string, readonly unknown[]>> }[]
      /** Absent in the order of the log. */
      readonly should?: {
        readonly constant_score: {
          readonly filter: { readonly bool: { readonly must_not: { readonly range: { readonly at: { gt: number } } } } }
        }
      }
    }
  }
  readonly sort: readonly Readonly<Record<string, 'asc' | 'desc'>>[]
  readonly search_after?: readonly (string | number)[]
  readonly aggs?: { readonly codes?: object; readonly partitions?: object }
}

/** Answers a request about these records; undefined for any other request. */
export const answerParked = (
  { path, body }: Request,
  documents: ReadonlyMap<string, ParkedDocument>,
): Answer | undefined => {
  if (path.endsWith('_refresh')) return { status: 200, body: { _shards: { failed: 0 } } }
  if (path === '/_mget') {
    const { docs } = body as { docs: readonly { readonly _index: string; readonly _id: string }[] }
    if (!docs.every(({ _index }) => _index.endsWith('-parked'))) return undefined
    const found = docs.map(({ _index, _id }) => {
      const _source = documents.get(_id)
      return _source === undefined ? { _index, _id, found: false } : { _index, _id, found: true, _version: 1, _source }
    })
    return { status: 200, body: { docs: found } }
  }
  return path.endsWith('-parked/_search') ? search(body as Asked, [...documents.values()]) : undefined
}

const search = (
  { size, query, sort = [], search_after, aggs }: Asked,
  documents: readonly ParkedDocument[],
): Answer => {
  const terms = query.bool.filter.flatMap(filter => Object.entries(filter.terms ?? {}))
  const matches = documents.filter(document =>
    terms.every(([field, values]) => values.includes(document[field as keyof ParkedDocument])),
  )
  const whole = { timed_out: false, _shards: { failed: 0 } }
  const counted = (['code', 'partition'] as const).find(field => aggs?.[`${field}s`] !== undefined)
  if (counted !== undefined) {
    const buckets = Array.from(
      Map.groupBy(matches, document => document[counted]),
      ([key, all]) => ({ key, doc_count: all.length }),
    )
    return { status: 200, body: { ...whole, hits: { hits: [] }, aggregations: { [`${counted}s`]: { buckets } } } }
  }
  const latest = query.bool.should?.constant_score.filter.bool.must_not.range.at.gt ?? Number.POSITIVE_INFINITY
  const orders = sort.flatMap(one => Object.entries(one))
  const valuesOf = (document: ParkedDocument) =>
    orders.map(([name]) => {
      if (name === '_score') return document.at > latest ? 0 : 1
      return document[name as 'at' | 'topic' | 'partition' | 'offset']
    })
  const compare = (a: readonly (string | number)[], b: readonly (string | number)[]): number => {
    for (const [at, [, direction]] of orders.entries()) {
      const [one = 0, other = 0] = [a[at], b[at]]
      if (one !== other) return one < other === (direction === 'asc') ? -1 : 1
    }
    return 0
  }
  const hits = matches
    .map(document => ({ document, values: valuesOf(document) }))
    .filter(({ values }) => search_after === undefined || compare(values, search_after) > 0)
    .sort((a, b) => compare(a.values, b.values))
    .slice(0, size)
    .map(({ document: { body: _, body_bytes: __, ...fields } }) => ({
      fields: Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, [value]])),
    }))
  const ahead = { doc_count: matches.filter(({ at }) => at > latest).length }
  return { status: 200, body: { ...whole, hits: { total: { value: matches.length }, hits }, aggregations: { ahead } } }
}

const base64 = (value: string): string => Buffer.from(value).toString('base64')

/** @returns documents by their ids */
export const parkedDocuments = (
  records: readonly {
    readonly code?: ParkCode
    readonly at: number
    readonly offset: number
    readonly partition?: number
    readonly topic?: string
    readonly key?: string
    readonly value?: string
    readonly headers?: Readonly<Record<string, unknown>>
  }[],
): Map<string, ParkedDocument> =>
  new Map(
    records.map(({ code = 'rep_unknown', at, offset, partition = 0, topic = 'events', ...content }) => {
      const { key = 'org_1', value = 'x', headers = {} } = content
      const named = Object.entries(headers).map(([name, header]) => [name, base64(String(header))] as [string, string])
      const body = { key: base64(key), value: base64(value), headers: named }
      const indexed = { org_id: key, type: String(headers.ce_type), event_id: String(headers.ce_id) }
      const document: ParkedDocument = { code, ...indexed, topic, partition, offset, at, body_bytes: 9, body }
      return [parkedId(topic, partition, offset), document]
    }),
  )
