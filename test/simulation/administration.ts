/** Requests of commands to the simulated Elasticsearch. Each is done in one step, when it arrives. */
import type { Answer, Request } from '../../core/store/elasticsearch/client.ts'
import type { Index, Stored } from './stored.ts'

type Scan = { readonly indices: readonly Index[]; readonly documents: readonly (readonly [Index, Stored])[] }

export class Administration {
  readonly #indices: Map<string, Index>
  readonly #scans = new Map<string, Scan>()
  #names = 0

  constructor(indices: Map<string, Index>) {
    this.#indices = indices
  }

  /** Returns undefined for any other request. */
  answer({ method, path, body, query }: Request): Answer | undefined {
    const [, first = '', second = '', third = ''] = path.split('/').map(decodeURIComponent)
    if (method === 'DELETE' && first === '_pit') return this.#close((body as { id: string }).id)
    if (method === 'DELETE' && second === '_doc') return this.#deleteDocument(first, third)
    if (method === 'DELETE') return this.#deleteIndices(first.split(','), query?.ignore_unavailable === true)
    if (first === '_resolve') return this.#namesOf(third.replace(/\*$/, ''))
    if (second === '_pit') return this.#open(first, query?.routing as string | undefined)
    if (first === '_search') return this.#scan(body as ScanAsked)
    if (second !== '_search') return undefined
    const { term, terms, bool } = (body as { query?: Searched } | undefined)?.query ?? {}
    if (term !== undefined) return this.#keptOf(first.split(','), term.org_id)
    if (terms !== undefined) return this.#documentsOf(first, terms.kind)
    const org = bool?.filter?.[0]?.term?.org_id
    return org === undefined || !first.includes('-api-keys') ? undefined : this.#keysOf(first, org)
  }

  /** Deletes all of the indices, or none. */
  #deleteIndices(names: readonly string[], ignoresMissing: boolean): Answer {
    if (!ignoresMissing && names.some(name => !this.#indices.has(name))) return NO_INDEX
    for (const name of names) this.#indices.delete(name)
    return { status: 200, body: { acknowledged: true } }
  }

  #deleteDocument(name: string, id: string): Answer {
    const index = this.#indices.get(name)
    if (index === undefined) return NO_INDEX
    return index.delete({ _id: id })
      ? { status: 200, body: { result: 'deleted' } }
      : { status: 404, body: { result: 'not_found' } }
  }

  #namesOf(start: string): Answer {
    const indices = [...this.#indices.keys()].filter(name => name.startsWith(start)).map(name => ({ name }))
    return { status: 200, body: { indices } }
  }

  #documentsOf(name: string, wanted: readonly string[]): Answer {
    const index = this.#indices.get(name)
    if (index === undefined) return NO_INDEX
    const found = searchable(index).filter(({ fields }) => wanted.includes(String(fields.kind)))
    const hits = found.map(({ id, fields }) => ({ _id: id, _source: fields }))
    return { status: 200, body: { timed_out: false, _shards: { failed: 0 }, hits: { hits } } }
  }

  #keptOf(names: readonly string[], org: string): Answer {
    const indices = names.flatMap(name => this.#indices.get(name) ?? [])
    if (indices.length < names.length) return NO_INDEX
    const hits = indices.flatMap(index =>
      searchable(index).flatMap(({ id, fields }) => (fields.org_id === org ? [{ _index: index.name, _id: id }] : [])),
    )
    return { status: 200, body: { timed_out: false, _shards: { failed: 0 }, hits: { hits } } }
  }

  #keysOf(name: string, org: string): Answer {
    const index = this.#indices.get(name)
    if (index === undefined) return NO_INDEX
    const found = searchable(index).filter(({ fields }) => fields.org_id === org && fields.key_id !== undefined)
    const hits = found.map(({ id, fields }) => ({ _id: id, _source: fields }))
    const body = { timed_out: false, _shards: { failed: 0 }, hits: { total: { value: hits.length }, hits } }
    return { status: 200, body }
  }

  #open(name: string, routing: string | undefined): Answer {
    const names = name.split(',')
    const indices = names.flatMap(one => this.#indices.get(one) ?? [])
    if (indices.length < names.length) return NO_INDEX
    const id = `pit-${++this.#names}`
    const documents = indices.flatMap(index => searchable(index, routing).map(stored => [index, stored] as const))
    this.#scans.set(id, { indices, documents })
    return { status: 200, body: { id } }
  }

  #scan({ pit: { id }, size, search_after: [after] = [-1], query: { bool } }: ScanAsked): Answer {
    const { indices = [], documents = [] } = this.#scans.get(id) ?? {}
    if (indices.length === 0 || indices.some(index => this.#indices.get(index.name) !== index)) return NO_INDEX
    const hits = documents
      .map(([{ name }, { id, routing, version, seqNo, source, fields }], place) => ({
        ...{ _index: name, _id: id, ...(routing !== undefined && { _routing: routing }) },
        ...{ _version: version, _seq_no: seqNo, _primary_term: 1, _source: JSON.parse(source) },
        ...{ fields, sort: [place] },
      }))
      .filter(({ sort: [place = 0] }) => place > after)
      .filter(({ fields }) => (bool?.filter ?? []).every(filter => fits(fields, filter)))
      .slice(0, size)
      .map(({ fields: { org_id, partition }, ...hit }) => ({ ...hit, fields: listed({ org_id, partition }) }))
    return { status: 200, body: { pit_id: id, timed_out: false, _shards: { failed: 0 }, hits: { hits } } }
  }

  #close(id: string): Answer {
    return { status: this.#scans.delete(id) ? 200 : 404, body: {} }
  }
}

/** Fields as Elasticsearch answers them from its columns: each has a list of values. */
const listed = (fields: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [[name, [value]]])))

type Searched = {
  /** For the earlier forms that are kept. */
  readonly term?: { readonly org_id: string }
  readonly terms?: { readonly kind: string[] }
  readonly bool?: { readonly filter?: readonly { readonly term?: { readonly org_id?: string } }[] }
}
type ScanAsked = {
  readonly pit: { readonly id: string }
  readonly size: number
  readonly search_after?: readonly [number]
  readonly query: { readonly bool?: { readonly filter: readonly ScanFilter[] } }
}
/** `bool` for documents without an organization. */
type ScanFilter = {
  readonly term?: { readonly org_id: string }
  readonly terms?: { readonly kind: readonly unknown[] }
  readonly bool?: object
}

const fits = ({ org_id, kind }: Stored['fields'], { term, terms, bool }: ScanFilter): boolean =>
  (!term || org_id === term.org_id) && (!terms || terms.kind.includes(kind)) && (!bool || org_id === undefined)

const NO_INDEX: Answer = { status: 404, body: { error: { type: 'index_not_found_exception' } } }

const searchable = (index: Index, routing?: string): Stored[] =>
  index.shardsOf(routing).flatMap(shard => [...(index.searchable[shard]?.values() ?? [])])
