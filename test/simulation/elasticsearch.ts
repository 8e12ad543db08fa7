/**
 * The simulated Elasticsearch for the requests of a projector. Each item of a bulk request, shard of a refresh and
 * document that is read has its own moment before the answer. `searches.ts` has the reads of an API, `link.ts` the
 * network.
 */

import type { Answer, Request } from '../../core/store/elasticsearch/client.ts'
import type { IndexDefinition } from '../../schemas/stored/mappings.ts'
import { isRead, updatesIn } from '../support/answering.ts'
import { Administration } from './administration.ts'
import type { Clock } from './clock.ts'
import type { Coverage } from './coverage.ts'
import type { Faults } from './faults.ts'
import { type Asked, searchNow } from './searches.ts'
import { type Address, Index, type Stored } from './stored.ts'

export type Observer = {
  readonly onStored: (index: Index, before: Stored | undefined, stored: Stored) => void
  readonly onRefreshed: (index: Index) => void
}

const ROUTING_MISSING = { status: 400, error: { type: 'routing_missing_exception' } }

export class SimulatedElasticsearch {
  readonly indices = new Map<string, Index>()
  readonly #templates = new Map<string, object | string>()
  readonly #clock: Clock
  readonly #faults: Faults
  readonly #coverage: Coverage
  readonly #observer: Observer
  readonly #administration = new Administration(this.indices)
  #refreshing = 0

  constructor(clock: Clock, faults: Faults, coverage: Coverage, observer: Observer) {
    this.#clock = clock
    this.#faults = faults
    this.#coverage = coverage
    this.#observer = observer
  }

  /** Answers when all of the request is done. Calls `onWritten` for each document of a bulk request. */
  execute(request: Request, answer: (answer: Answer) => void, onWritten: (id: string) => void): void {
    const [, first = '', second = '', third = ''] = request.path.split('/').map(decodeURIComponent)
    const administered = this.#administration.answer(request)
    if (administered !== undefined) answer(administered)
    else if (isRead(request.bulk)) this.#readPrimaries(updatesIn(request.bulk), answer)
    else if (first === '_bulk') this.#bulk(String(request.bulk), answer, onWritten)
    else if (first === '_mget') this.#multiGet(request.body as MultiGet, answer)
    else if (first === '_index_template') answer(this.#template(request, second))
    else if (second === '_search') answer(this.#search(first, request))
    else if (second === '_refresh') this.#refresh(first.split(','), answer)
    else if (second === '_settings') answer(this.#settings(first))
    else if (second === '_stats') answer(this.#stats(first))
    else if (second === '_recovery') answer(this.#recovery(first.split(',')))
    else if (first === '_nodes') answer(this.#clocks())
    else if (first === '_cluster') answer(this.#health(third))
    // Without security it knows no such path.
    else if (first === '_security') answer({ status: 400, body: {} })
    else answer(this.#one(request, first, second, third))
  }

  #template({ method, body = {} }: Request, name: string): Answer {
    if (method === 'PUT') this.#templates.set(name, body)
    const found = [...this.#templates].map(([name, index_template]) => ({ name, index_template }))
    return { status: 200, body: { index_templates: found } }
  }

  #one({ method, body, query }: Request, name: string, operation: string, id: string): Answer {
    const index = this.indices.get(name)
    if (operation === '' && method === 'PUT') return this.#create(name, body as CreateIndex)
    if (index === undefined) return { status: 404, body: { error: { type: 'index_not_found_exception' } } }
    if (operation === '') return { status: 200, body: describe(index) }
    if (method === 'GET') return { ...got(index.find({ _id: id }), id) }

    // A write without a condition replaces any version.
    const present = index.find({ _id: id })?.seqNo ?? 'nothing'
    const wanted = query?.if_seq_no === undefined ? present : Number(query.if_seq_no)
    const seen = operation === '_create' ? 'nothing' : wanted
    const { status, ...answer } = this.#replace(index, { _id: id }, seen, JSON.stringify(body))
    return { status, body: answer }
  }

  /** Returns the indices whose names match the prefix before the asterisk. */
  #matching(pattern: string): Index[] {
    return [...this.indices.values()].filter(({ name }) => name.startsWith(pattern.replace('*', '')))
  }

  #settings(pattern: string): Answer {
    const named = this.#matching(pattern)
    const body = Object.fromEntries(
      named.map(({ name, uuid, shards }) => [name, { settings: { index: { uuid, number_of_shards: shards } } }]),
    )
    return { status: 200, body }
  }

  #stats(pattern: string): Answer {
    const named = this.#matching(pattern)
    const shardsOf = ({ uuid, shards }: Index) => ({
      shards: Object.fromEntries(
        Array.from({ length: shards }, (_, shard) => [
          shard,
          [{ routing: { primary: true }, commit: { user_data: { history_uuid: `history-of-${uuid}-${shard}` } } }],
        ]),
      ),
    })
    return { status: 200, body: { indices: Object.fromEntries(named.map(index => [index.name, shardsOf(index)])) } }
  }

  /** How the shards began: those of a restored index, which has another id, from a snapshot. */
  #recovery(names: readonly string[]): Answer {
    const found = names.flatMap(name => this.indices.get(name) ?? [])
    if (found.length < names.length) return { status: 404, body: { error: { type: 'index_not_found_exception' } } }
    const shardsOf = ({ name, uuid, shards }: Index) => ({
      shards: Array.from({ length: shards }, (_, id) => ({
        id,
        type: uuid === `uuid-of-${name}` ? 'EMPTY_STORE' : 'SNAPSHOT',
        primary: true,
      })),
    })
    return { status: 200, body: Object.fromEntries(found.map(index => [index.name, shardsOf(index)])) }
  }

  #clocks(): Answer {
    return { status: 200, body: { _nodes: { failed: 0 }, nodes: { node: { timestamp: this.#clock.now() } } } }
  }

  #replace(index: Index, address: Address, seen: number | 'nothing', source: string) {
    const before = index.find(address)
    const stored = index.replace(address, seen, source)
    if (stored === 409) {
      if (seen !== 'nothing') this.#coverage.count('position conflicts')
      return { status: 409, error: { type: 'version_conflict_engine_exception' } }
    }
    this.#observer.onStored(index, before, stored)
    const status = before === undefined ? 201 : 200
    return { status, _id: stored.id, _version: stored.version, _seq_no: stored.seqNo, _primary_term: 1 }
  }

  #create(name: string, { mappings, settings }: CreateIndex): Answer {
    if (this.indices.has(name)) return { status: 400, body: { error: { type: 'resource_already_exists_exception' } } }
    this.indices.set(name, new Index(name, { mappings, settings: settings.index }))
    return { status: 200, body: { acknowledged: true } }
  }

  #bulk(text: string, answer: (answer: Answer) => void, onWritten: (id: string) => void): void {
    const operations = operationsIn(text)
    const count = operations.length
    const { bulkDocuments } = this.#faults.knobs
    if (bulkDocuments > 0 && count > bulkDocuments) {
      this.#coverage.count('bulk requests too large')
      answer({ status: 413, body: '' })
      return
    }
    this.#coverage.count('bulk requests')
    const items: unknown[] = []
    const moments = this.#moments(count)
    for (const [place, { name, item, source }] of operations.entries()) {
      const { _index, _id } = item
      this.#clock.after(moments[place] ?? 0, () => {
        const written = name === 'delete' ? this.#delete(item) : this.#write(item, source)
        items[place] = { [name]: { _index, _id, ...written } }
        if (written.status < 300) onWritten(_id)
      })
    }
    this.#clock.after(moments.last, () => {
      const refused = items.filter(item => (item as { index?: { status: number } }).index?.status === 429).length
      if (refused > 0 && refused < count) this.#coverage.count('bulk requests of which some items failed')
      answer({ status: 200, body: { items } })
    })
  }

  #write(item: Item, source: string) {
    const { _index: name, version, version_type, if_seq_no } = item
    const index = this.indices.get(name)
    if (index === undefined) return { status: 404, error: { type: 'index_not_found_exception' } }
    if (this.#faults.isBlocked) return { status: 403, error: { type: 'cluster_block_exception' } }
    if (this.#faults.happens('itemRefused')) {
      this.#coverage.count('bulk items refused for now')
      return { status: 429, error: { type: 'es_rejected_execution_exception' } }
    }
    const fields = JSON.parse(source) as Stored['fields']
    if (index.lacksRouting(item)) return ROUTING_MISSING
    if (!index.takes(fields)) return { status: 400, error: { type: 'strict_dynamic_mapping_exception' } }
    const before = index.find(item)
    if (if_seq_no !== undefined) return this.#replace(index, item, if_seq_no, source)
    // Without an external version, a document is overwritten.
    const isOverSame = version_type === 'external_gte'
    const status = index.write(item, version ?? (before?.version ?? 0) + 1, source, fields, isOverSame)
    if (status === 409) {
      this.#coverage.count('bulk items of an older or equal version')
      return { status, error: { type: 'version_conflict_engine_exception' } }
    }
    if (this.#refreshing > 0) this.#coverage.count('refreshes during which something was written')
    const stored = index.find(item)
    if (stored !== undefined) this.#observer.onStored(index, before, stored)
    return { status }
  }

  #delete(item: Item) {
    const { _index: name, if_seq_no } = item
    const index = this.indices.get(name)
    if (index === undefined) return { status: 404, error: { type: 'index_not_found_exception' } }
    if (index.lacksRouting(item)) return ROUTING_MISSING
    const stored = index.find(item)
    if (if_seq_no !== undefined && stored?.seqNo !== if_seq_no) {
      return { status: 409, error: { type: 'version_conflict_engine_exception' } }
    }
    return { status: index.delete(item) ? 200 : 404 }
  }

  #refresh(names: readonly string[], answer: (answer: Answer) => void): void {
    const indices = names.flatMap(name => this.indices.get(name) ?? [])
    if (indices.length < names.length) {
      answer({ status: 404, body: {} })
      return
    }
    const shards = indices.flatMap(index => Array.from({ length: index.shards }, (_, shard) => ({ index, shard })))
    const moments = this.#moments(shards.length)
    let failed = 0
    let missing = 0
    this.#refreshing++
    this.#coverage.count('refreshes')
    for (const [place, { index, shard }] of shards.entries()) {
      const fails = this.#faults.happens('shardFails')
      // Elasticsearch does not count an unassigned shard as failed.
      if (fails && this.#faults.random.chance(0.5)) failed++
      else if (fails) missing++
      else
        this.#clock.after(moments[place] ?? 0, () => {
          index.refresh(shard)
          this.#observer.onRefreshed(index)
        })
    }
    if (failed > 0) this.#coverage.count('refreshes that failed on a shard')
    if (missing > 0) this.#coverage.count('refreshes that missed a shard')
    this.#clock.after(moments.last, () => {
      this.#refreshing--
      const successful = shards.length - failed - missing
      answer({ status: 200, body: { _shards: { total: shards.length, successful, failed } } })
    })
  }

  #search(name: string, { body, query }: Request): Answer {
    if ('should' in (body as SearchParked).query.bool) return this.#searchParked(name, body as SearchParked)
    if (name.split(',').some(one => !this.indices.has(one))) return { status: 404, body: {} }
    this.#coverage.count('searches of projectors')
    const routing = query?.routing === undefined ? undefined : String(query.routing)
    return {
      status: 200,
      body: searchNow(this, name, routing, body as Asked, () => this.#faults.happens('shardFails')),
    }
  }

  /** Finds the parked records from a position on, by partition. A failed shard shows in the status. */
  #searchParked(name: string, { size, query, search_after: [after, from] = [-1, -1] }: SearchParked): Answer {
    const index = this.indices.get(name)
    if (index === undefined) return { status: 404, body: {} }
    const found = index.searchable
      .flatMap(shard => [...shard.values()])
      .map(({ id, fields }) => ({ _id: id, sort: [Number(fields.partition), Number(fields.offset)] as const }))
      .filter(({ sort: [partition, offset] }) => {
        const { gte } = query.bool.should[partition]?.bool.filter[1].range.offset ?? {}
        return gte !== undefined && offset >= gte && (partition > after || (partition === after && offset > from))
      })
      .sort(({ sort: a }, { sort: b }) => a[0] - b[0] || a[1] - b[1])
    return { status: 200, body: { timed_out: false, _shards: { failed: 0 }, hits: { hits: found.slice(0, size) } } }
  }

  /** A shard that was unassigned a moment ago can be active again, without the latest refresh. */
  #health(name: string): Answer {
    const { shards = 0 } = this.indices.get(name) ?? {}
    if (!this.#faults.happens('shardFails')) return { status: 200, body: { status: 'green', active_shards: shards } }
    return { status: 200, body: { status: 'red', active_shards: shards - 1 } }
  }

  #multiGet({ docs }: MultiGet, answer: (answer: Answer) => void): void {
    const moments = this.#moments(docs.length)
    const found: unknown[] = []
    let unanswered = false
    for (const [place, address] of docs.entries()) {
      const { _index, _id } = address
      this.#clock.after(moments[place] ?? 0, () => {
        const index = this.indices.get(_index)
        const fails = this.#faults.happens('shardFails')
        unanswered ||= fails
        if (index === undefined) found[place] = { _index, _id, error: { type: 'index_not_found_exception' } }
        else if (fails) found[place] = { _index, _id, error: { type: 'no_shard_available_action_exception' } }
        else if (index.lacksRouting(address)) found[place] = { _index, _id, error: ROUTING_MISSING.error }
        else found[place] = { _index, ...got(this.#find(index, address), _id).body }
      })
    }
    this.#clock.after(moments.last, () => {
      if (unanswered) this.#coverage.count('reads without an answer of a shard')
      answer({ status: 200, body: { docs: found } })
    })
  }

  /** Any copy may answer a multi-get, also an old one. */
  #find(index: Index, address: Address): Stored | undefined {
    if (!this.#faults.happens('oldCopy')) return index.find(address)
    const old = index.inOldCopy(address)
    if (old !== index.find(address)) this.#coverage.count('documents read from an old copy')
    return old
  }

  /** Carries out updates without a change, in the primaries. */
  #readPrimaries(updates: readonly Item[], answer: (answer: Answer) => void): void {
    const moments = this.#moments(updates.length)
    const items: unknown[] = []
    let unanswered = false
    for (const [place, item] of updates.entries()) {
      const { _index, _id } = item
      this.#clock.after(moments[place] ?? 0, () => {
        const fails = this.#faults.happens('shardFails')
        unanswered ||= fails
        items[place] = { update: { _index, _id, ...this.#readPrimary(item, fails) } }
      })
    }
    this.#clock.after(moments.last, () => {
      if (unanswered) this.#coverage.count('reads without an answer of a shard')
      answer({ status: 200, body: { errors: false, items } })
    })
  }

  #readPrimary(item: Item, fails: boolean) {
    const index = this.indices.get(item._index)
    if (index === undefined) return { status: 404, error: { type: 'index_not_found_exception' } }
    if (this.#faults.isBlocked) return { status: 403, error: { type: 'cluster_block_exception' } }
    if (fails) return { status: 503, error: { type: 'unavailable_shards_exception' } }
    if (index.lacksRouting(item)) return ROUTING_MISSING
    const stored = index.find(item)
    if (stored === undefined) return { status: 404, error: { type: 'document_missing_exception' } }
    const { version, seqNo, source } = stored
    return { status: 200, result: 'noop', _version: version, _seq_no: seqNo, get: { _source: JSON.parse(source) } }
  }

  /** Returns a moment for each part of a request, in random order, and `last`, a moment after all of them. */
  #moments(parts: number): number[] & { last: number } {
    const length = this.#faults.delay()
    const moments = Array.from({ length: parts }, () => this.#faults.random.next() * length)
    return Object.assign(moments, { last: length })
  }
}

type Item = Address & {
  readonly _index: string
  readonly version?: number
  readonly version_type?: 'external' | 'external_gte'
  readonly if_seq_no?: number
}
type SearchParked = {
  readonly size: number
  readonly query: { readonly bool: { readonly should: readonly { readonly bool: { readonly filter: OfPartition } }[] } }
  readonly search_after?: readonly [partition: number, offset: number]
}
type OfPartition = readonly [object, { readonly range: { readonly offset: { readonly gte: number } } }]
type MultiGet = { readonly docs: readonly Item[] }
type CreateIndex = {
  readonly mappings: IndexDefinition['mappings']
  readonly settings: { readonly index: IndexDefinition['settings'] }
}

type Operation = { readonly name: 'index' | 'delete'; readonly item: Item; readonly source: string }

/** Only a write is followed by a line with the document. */
const operationsIn = (text: string): Operation[] => {
  const operations: Operation[] = []
  const lines = text.split('\n').slice(0, -1)
  for (let at = 0; at < lines.length; at++) {
    const { index, delete: deleted } = JSON.parse(lines[at] ?? '') as { readonly index?: Item; readonly delete?: Item }
    if (deleted) operations.push({ name: 'delete', item: deleted, source: '' })
    else if (index) operations.push({ name: 'index', item: index, source: lines[++at] ?? '' })
  }
  return operations
}

const describe = ({ name, definition: { mappings, settings } }: Index) => ({
  [name]: { mappings, settings: { index: settings } },
})

const got = (stored: Stored | undefined, id: string) => {
  if (stored === undefined) return { status: 404, body: { _id: id, found: false } }
  const { version, seqNo, source } = stored
  const fields = { _version: version, _seq_no: seqNo, _primary_term: 1, _source: JSON.parse(source) }
  return { status: 200, body: { _id: id, found: true, ...fields } }
}
