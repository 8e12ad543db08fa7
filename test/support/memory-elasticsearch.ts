/**
 * Documents in memory, for the requests of commands that find, delete and write documents. Like Elasticsearch it
 * remembers the version of a deleted document for a minute, and a search finds what was refreshed. Documents of each
 * routing have a shard of their own: with another routing a document is not found.
 */
import type { Answer, Request, Send } from '../../core/store/elasticsearch/client.ts'
import type { IndexDefinition } from '../../schemas/stored/mappings.ts'
import { indexAnswer, isRead, sending, updatesIn } from './answering.ts'

export type Document = { readonly version: number; readonly source: Readonly<Record<string, unknown>> }
type Kept = Document & { readonly seqNo: number; readonly routing?: string | undefined }
type Address = { readonly _index: string; readonly _id: string; readonly routing?: string | undefined }
type Item = Address & { readonly version?: number; readonly version_type?: string; readonly if_seq_no?: number }

const GC_DELETES_MS = 60_000

export class MemoryElasticsearch {
  readonly #documents = new Map<string, Map<string, Kept>>()
  readonly #searchable = new Map<string, Map<string, Kept>>()
  readonly #deleted = new Map<string, { readonly version: number; readonly at: number }>()
  readonly #pits = new Map<string, readonly (readonly [index: string, id: string, Kept])[]>()
  #seqNo = 0
  /** The answers to `GET /index`. */
  definitions: ReadonlyMap<string, IndexDefinition> = new Map()
  /** Milliseconds that have passed. */
  time = 0
  /** Called before each request. @throws to end the command there */
  onRequest: (request: Request) => void = () => undefined

  put(index: string, id: string, version: number, source: Document['source'], routing?: string): void {
    this.#of(index).set(id, { version, source, seqNo: this.#seqNo++, routing })
    this.#refresh(index)
  }

  /** Every document of an index: id → version and source. */
  all(index: string): Readonly<Record<string, Document>> {
    const documents = [...this.#of(index)].sort(([a], [b]) => (a < b ? -1 : 1))
    return Object.fromEntries(documents.map(([id, { version, source }]) => [id, { version, source }]))
  }

  clear(): void {
    this.#documents.clear()
    this.#searchable.clear()
  }

  /** Copies an index as it is now, as a snapshot does. */
  copyIndexTo(index: string, other: MemoryElasticsearch): void {
    for (const [id, { version, source, routing }] of this.#of(index)) {
      other.put(index, id, version, structuredClone(source), routing)
    }
  }

  get send(): Send {
    return sending(async request => {
      this.onRequest(request)
      // The document that was given may change afterwards.
      return structuredClone(this.#answer(request))
    })
  }

  #answer({ method, path, body, query, bulk }: Request): Answer {
    const [, first = '', operation = '', id = ''] = path.split('/').map(decodeURIComponent)
    if (isRead(bulk)) return this.#read(updatesIn(bulk))
    if (first === '_bulk') return this.#bulk(String(bulk))
    if (first === '_mget') return this.#multiGet((body as { docs: readonly Item[] }).docs)
    if (first === '_pit') return { status: 200, body: {} }
    if (first === '_search') return this.#scan(body as Scan)
    if (operation === '_pit') return this.#open(first)
    if (operation === '_refresh') return this.#refresh(first)
    if (operation === '_search') return this.#searchTerms(first, body as Terms)
    if (method === 'GET' && operation === '') return indexAnswer(first, this.definitions)
    const stored = this.#of(first).get(id)
    if (method === 'GET')
      return stored ? { status: 200, body: answerOf(id, stored) } : { status: 404, body: { found: false } }
    if (query?.if_seq_no !== undefined && stored?.seqNo !== query.if_seq_no) return { status: 409, body: {} }
    const written = this.#write({ _index: first, _id: id }, (stored?.version ?? 0) + 1, body as Document['source'])
    return { status: 200, body: answerOf(id, written) }
  }

  #bulk(text: string): Answer {
    const lines = text.trim().split('\n')
    const items: object[] = []
    for (let at = 0; at < lines.length; at++) {
      const { delete: deleted, index } = JSON.parse(lines[at] ?? '') as { delete?: Item; index?: Item }
      const { _index, _id } = deleted ?? index ?? {}
      if (deleted) items.push({ delete: { _index, _id, status: this.#delete(deleted) } })
      else if (index) items.push({ index: { _index, _id, status: this.#index(index, JSON.parse(lines[++at] ?? '')) } })
    }
    return { status: 200, body: { items } }
  }

  #index(item: Item, source: Document['source']): number {
    const { _index, _id, version, version_type } = item
    const stored = this.#find(item)
    const isOverSame = version_type === 'external_gte' && version === stored?.version
    const deleted = this.#deleted.get(`${_index}/${_id}`)
    const remembered = deleted && this.time - deleted.at < GC_DELETES_MS ? deleted.version : -1
    if (version !== undefined && !isOverSame && version <= Math.max(stored?.version ?? -1, remembered)) return 409
    this.#write(item, version ?? (stored?.version ?? 0) + 1, source)
    return stored ? 200 : 201
  }

  #delete(item: Item): number {
    const { _index, _id, version, if_seq_no } = item
    const stored = this.#find(item)
    if (version !== undefined && stored !== undefined && stored.version >= version) return 409
    if (if_seq_no !== undefined && stored?.seqNo !== if_seq_no) return 409
    if (stored === undefined) return 404
    this.#of(_index).delete(_id)
    this.#deleted.set(`${_index}/${_id}`, { version: stored.version + 1, at: this.time })
    return 200
  }

  #read(addresses: readonly Item[]): Answer {
    const items = addresses.map(address => {
      const { _index, _id } = address
      const stored = this.#find(address)
      const missing = { status: 404, error: { type: 'document_missing_exception' } }
      const found = { status: 200, result: 'noop', _version: stored?.version, get: { _source: stored?.source } }
      return { update: { _index, _id, ...(stored ? found : missing) } }
    })
    return { status: 200, body: { items } }
  }

  #multiGet(addresses: readonly Item[]): Answer {
    const docs = addresses.map(address => {
      const { _id } = address
      const stored = this.#find(address)
      return stored ? answerOf(_id, stored) : { _id, found: false }
    })
    return { status: 200, body: { docs } }
  }

  #open(indices: string): Answer {
    const id = `pit-${this.#pits.size}`
    const of = (index: string) =>
      [...(this.#searchable.get(index) ?? [])].map(([_id, kept]) => [index, _id, kept] as const)
    this.#pits.set(id, indices.split(',').flatMap(of))
    return { status: 200, body: { id } }
  }

  #scan({ pit: { id }, size, query, _source: sources, search_after: [after] = [-1] }: Scan): Answer {
    const filters = query?.bool?.filter ?? []
    const hits = (this.#pits.get(id) ?? [])
      .filter(([, , { source }]) => filters.every(filter => fits(source, filter)))
      .map(([_index, _id, kept], at) => ({
        ...{ _index, ...answerOf(_id, kept), ...(kept.routing !== undefined && { _routing: kept.routing }) },
        ...{ fields: fieldsOf(kept), sort: [at] },
      }))
      .slice(after + 1, after + 1 + size)
      .map(({ _source, ...hit }) => (sources === false ? hit : { ...hit, _source }))
    return { status: 200, body: { ...WHOLE, pit_id: id, hits: { hits } } }
  }

  #searchTerms(indices: string, { size, query: { term, terms = {} } }: Terms): Answer {
    const [[name, values] = ['', []]] = Object.entries({ ...terms, ...(term && { org_id: [term.org_id] }) })
    const hits = indices
      .split(',')
      .flatMap(_index =>
        [...(this.#searchable.get(_index) ?? [])].flatMap(([_id, { source }]) =>
          values.includes(String(source[name])) ? [{ _index, _id }] : [],
        ),
      )
    return { status: 200, body: { ...WHOLE, hits: { hits: hits.slice(0, size) } } }
  }

  #refresh(indices: string): Answer {
    for (const index of indices.split(',')) this.#searchable.set(index, new Map(this.#of(index)))
    return { status: 200, body: WHOLE }
  }

  #write({ _index, _id, routing }: Address, version: number, source: Document['source']): Kept {
    const written = { version, source, seqNo: this.#seqNo++, routing }
    this.#of(_index).set(_id, written)
    return written
  }

  #find({ _index, _id, routing }: Address): Kept | undefined {
    const stored = this.#of(_index).get(_id)
    return (stored?.routing ?? _id) === (routing ?? _id) ? stored : undefined
  }

  #of(index: string): Map<string, Kept> {
    const documents = this.#documents.get(index) ?? new Map<string, Kept>()
    this.#documents.set(index, documents)
    return documents
  }
}

const WHOLE = { timed_out: false, _shards: { failed: 0 } }
type Scan = {
  readonly pit: { readonly id: string }
  readonly size: number
  readonly query?: { readonly bool?: { readonly filter: readonly Filter[] } }
  readonly _source?: unknown
  readonly search_after?: [number]
}
type Terms = {
  readonly size: number
  readonly query: {
    readonly term?: { readonly org_id: string }
    readonly terms?: Readonly<Record<string, readonly string[]>>
  }
}

/** Others find all. */
type Filter = {
  readonly term?: { readonly org_id: string }
  readonly terms?: { readonly kind: readonly unknown[] }
  readonly range?: Readonly<Record<string, { readonly gte: number }>>
}
const fits = (source: Document['source'], { term, terms, range = {} }: Filter): boolean =>
  (!term || source.org_id === term.org_id) &&
  (!terms || terms.kind.includes(source.kind)) &&
  Object.entries(range).every(([field, { gte }]) => Number(source[field]) >= gte)

const answerOf = (_id: string, { version, source, seqNo }: Kept) => ({
  ...{ _id, found: true, _version: version, _seq_no: seqNo, _primary_term: 1, _source: source },
})

const fieldsOf = ({ source: { org_id, partition } }: Kept) => ({
  ...(org_id !== undefined && { org_id: [org_id] }),
  ...(partition !== undefined && { partition: [partition] }),
})
