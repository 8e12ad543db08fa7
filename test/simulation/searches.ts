/**
 * Searches and multi-gets of an API process on the simulated Elasticsearch, answered as bytes in the format of the real
 * one. Each shard of a search and each document of a multi-get is read at its own moment. A read can be late, fail, or
 * be answered partially.
 */

import type { IndexChecks } from '../../core/reading/check-indices.ts'
import { Refusal, unavailable } from '../../core/runtime/refusals.ts'
import { batchMultiGets } from '../../core/store/read/batch-multi-gets.ts'
import type { MultiGet, Search } from '../../core/store/read/search-client.ts'
import type { DocumentName } from '../../core/store/read/slice-documents.ts'
import type { Clock } from './clock.ts'
import type { Faults } from './faults.ts'
import type { Index, Stored } from './stored.ts'

type Reads = { readonly search: Search; readonly multiGet: MultiGet }

/** Creates the reads of an API process, which batches multi-gets of several requests. */
export const createSearches = (clock: Clock, engine: Searched, faults: Faults): Reads => {
  const { search, multiGet } = createReads(clock, engine, faults)
  const { ofProcess } = batchMultiGets(multiGet, (milliseconds, run) => clock.after(milliseconds, run))
  return { search, multiGet: ofProcess }
}

/** No check of the indices. */
export const noIndexChecks: IndexChecks = { check: () => undefined, checkNow: async () => undefined }

export type Searched = { readonly indices: ReadonlyMap<string, Index> }

/** Creates reads without batching. */
export const createReads = (clock: Clock, engine: Searched, faults: Faults): Reads => {
  /** Reads each part at its own moment, and answers after all of them. */
  const ask = (parts: readonly ((fails: boolean) => void)[], answer: () => string): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      if (faults.elasticsearch !== 'well' || faults.happens('readFails')) {
        clock.after(faults.delay(), () => reject(unavailable('elasticsearch_connection')))
        return
      }
      const arrival = faults.delay()
      const length = faults.delay()
      for (const part of parts) {
        clock.after(arrival + faults.random.next() * length, () => part(faults.happens('readFails')))
      }
      clock.after(arrival + length + faults.delay(), () => resolve(Buffer.from(answer())))
    })

  return {
    search: ({ index: name, routing }, body) => {
      const asked = JSON.parse(body) as Asked
      const names = name.split(',')
      const indices = names.flatMap(index => engine.indices.get(index) ?? [])
      if (indices.length < names.length) {
        return new Promise((_, reject) => {
          clock.after(faults.delay(), () => reject(new Refusal('unavailable', { reason: 'elasticsearch_status_404' })))
        })
      }
      const hits: Hit[] = []
      let failed = 0
      const parts = indices.flatMap(index =>
        index.shardsOf(routing).map(shard => (fails: boolean) => {
          if (fails) failed++
          else hits.push(...matching(index, shard, asked))
        }),
      )
      return ask(parts, () => searchAnswer(hits, asked, parts.length, failed))
    },
    multiGet: names => {
      const found: string[] = []
      const look = (wanted: DocumentName, place: number, fails: boolean): void => {
        found[place] = documentAnswer(engine, wanted, fails)
        // The control index has one shard, which reads its documents in the order of the request.
        const next = names.findIndex(({ form }, at) => at > place && form === 'small' && wanted.form === 'small')
        const name = names[next]
        if (name) found[next] = documentAnswer(engine, name, fails)
      }
      const parts = names.map((wanted, place) => (fails: boolean) => look(wanted, place, fails))
      return ask(parts, () => `{"docs":[${found.join()}]}`)
    },
  }
}

type Range = Readonly<Partial<Record<'gt' | 'gte' | 'lt' | 'lte', number>>>
type Filter = {
  readonly term?: Readonly<Record<string, unknown>>
  readonly terms?: Readonly<Record<string, readonly unknown[]>>
  readonly range?: Readonly<Record<string, Range>>
}
export type Asked = {
  readonly size: number
  readonly sort?: readonly Readonly<Record<string, 'asc' | 'desc'>>[]
  readonly query: { readonly bool: { readonly filter: readonly Filter[] } }
  readonly from?: number
  readonly docvalue_fields?: readonly string[]
  readonly aggs?: {
    readonly all: {
      readonly composite?: { readonly sources: readonly Readonly<Record<string, unknown>>[] }
      readonly terms?: { readonly field: string; readonly min_doc_count: number }
      readonly filters?: { readonly filters: readonly Filter[] }
    }
  }
}
type Hit = { readonly index: Index; readonly document: Stored; readonly place: number }

/** Answers a search of a projector, all shards at one moment. @param fails whether a shard does not answer */
export const searchNow = (
  engine: Searched,
  index: string,
  routing: string | undefined,
  asked: Asked,
  fails: () => boolean,
): unknown => {
  const shards = index.split(',').flatMap(name => {
    const found = engine.indices.get(name)
    return found?.shardsOf(routing).map(shard => ({ found, shard })) ?? []
  })
  const answering = shards.filter(() => !fails())
  const hits = answering.flatMap(({ found, shard }) => matching(found, shard, asked))
  return JSON.parse(searchAnswer(hits, asked, shards.length, shards.length - answering.length))
}

const matching = (index: Index, shard: number, { query, sort }: Asked): Hit[] => {
  const [order = ''] = Object.keys(sort?.[0] ?? {})
  const found: Hit[] = []
  for (const document of index.searchable[shard]?.values() ?? []) {
    if (!query.bool.filter.every(filter => fits(document, filter))) continue
    found.push({ index, document, place: Number(document.fields[order] ?? 0) })
  }
  return found
}

const fits = ({ fields }: Stored, { term, terms, range }: Filter): boolean => {
  for (const name in terms) if (!terms[name]?.includes(fields[name])) return false
  for (const name in term) if (!valuesOf(fields, name).includes(term[name])) return false
  for (const name in range) if (!lies(fields[name], range[name] ?? {})) return false
  return true
}

/** All values of a field: of each line of a payout its deal. */
const valuesOf = (fields: Stored['fields'], name: string): readonly unknown[] => {
  if (name !== DEALS) return [fields[name]]
  const { line_items = [] } = fields.body as { readonly line_items?: readonly { readonly deal_id: unknown }[] }
  return line_items.map(({ deal_id }) => deal_id)
}
const DEALS = 'body.line_items.deal_id'

const lies = (value: unknown, { gt = -1, gte = -1, lt = INFINITE, lte = INFINITE }: Range): boolean =>
  typeof value === 'number' && value > gt && value >= gte && value < lt && value <= lte
const INFINITE = Number.POSITIVE_INFINITY

/** Counts each combination of values, all in one answer. */
const countsOf = (hits: readonly Hit[], sources: readonly Readonly<Record<string, unknown>>[]): string => {
  const names = sources.flatMap(source => Object.keys(source))
  const counts = Map.groupBy(hits, ({ document: { fields } }) => JSON.stringify(names.map(name => fields[name])))
  const buckets = [...counts].map(([values, { length }]) => {
    const key = Object.fromEntries((JSON.parse(values) as unknown[]).map((value, place) => [names[place], value]))
    return { key, doc_count: length }
  })
  return JSON.stringify({ all: { buckets } })
}

/** Counts each value that is frequent enough. */
const frequentOf = (hits: readonly Hit[], field: string, least: number): string => {
  const counts = Map.groupBy(hits, ({ document: { fields } }) => fields[field])
  const buckets = [...counts].flatMap(([key, { length }]) => (length < least ? [] : [{ key, doc_count: length }]))
  return JSON.stringify({ all: { buckets } })
}

/** Counts what each filter finds. */
const countsOfFilters = (hits: readonly Hit[], filters: readonly Filter[]): string => {
  const buckets = filters.map(filter => ({ doc_count: hits.filter(({ document }) => fits(document, filter)).length }))
  return JSON.stringify({ all: { buckets } })
}

const aggregationsOf = (
  hits: readonly Hit[],
  { composite, terms, filters }: NonNullable<Asked['aggs']>['all'],
): string => {
  if (filters !== undefined) return countsOfFilters(hits, filters.filters)
  return terms === undefined
    ? countsOf(hits, composite?.sources ?? [])
    : frequentOf(hits, terms.field, terms.min_doc_count)
}

const searchAnswer = (
  hits: readonly Hit[],
  { size, from = 0, sort, docvalue_fields, aggs }: Asked,
  total: number,
  failed: number,
): string => {
  const descends = Object.values(sort?.[0] ?? {})[0] === 'desc'
  const shards = `{"total":${total},"successful":${total - failed},"skipped":0,"failed":${failed}}`
  const texts = hits
    .toSorted((a, b) => (descends ? b.place - a.place : a.place - b.place))
    .slice(from, from + size)
    .map(({ index, document: { id, routing, source, fields } }) => {
      const routed = routing === undefined ? '' : `,"_routing":"${routing}"`
      const head = `{"_index":${JSON.stringify(index.name)},"_id":${JSON.stringify(id)},"_score":null${routed}`
      if (docvalue_fields !== undefined) {
        const named = docvalue_fields.flatMap(name => (fields[name] === undefined ? [] : [[name, [fields[name]]]]))
        return `${head},"fields":${JSON.stringify(Object.fromEntries(named))}}`
      }
      return sort === undefined
        ? `${head}}`
        : `${head},"_source":${source},"sort":[${sort.flatMap(Object.keys).map(name => fields[name])}]}`
    })
  const counts = aggs === undefined ? '' : `,"aggregations":${aggregationsOf(hits, aggs.all)}`
  return `{"took":1,"timed_out":false,"_shards":${shards},"hits":{"max_score":null,"hits":[${texts.join()}]}${counts}}`
}

const documentAnswer = (engine: Searched, address: DocumentName, fails: boolean): string => {
  const { _index: name, _id: id } = address
  const head = `{"_index":${JSON.stringify(name)},"_id":${JSON.stringify(id)}`
  const index = engine.indices.get(name)
  if (index === undefined || fails) return `${head},"error":{"type":"no_shard_available_action_exception"}}`
  if (index.lacksRouting(address)) return `${head},"error":{"type":"routing_missing_exception"}}`
  const document = index.find(address)
  if (document === undefined) return `${head},"found":false}`
  const { version, seqNo, source } = document
  const routed = document.routing === undefined ? '' : `,"_routing":"${document.routing}"`
  const versions = `"_version":${version},"_seq_no":${seqNo},"_primary_term":1${routed}`
  return `${head},${versions},"found":true,"_source":${source}}`
}
