/** Indices, control documents, and the requests so far. Answers the requests of a start like Elasticsearch. */

import { StopError } from '../../core/runtime/failures.ts'
import type { Answer } from '../../core/store/elasticsearch/client.ts'
import { sending } from '../support/answering.ts'

type Index = { mappings: unknown; settings: { index: Record<string, unknown> } }

export class StartedElasticsearch {
  readonly indices = new Map<string, Index>()
  readonly documents = new Map<string, unknown>()
  readonly asked: string[] = []
  readonly templates: { readonly name: string; readonly index_template: object }[] = []
  mayPutTemplates = true
  mayReadTemplates = true
  /** `action.auto_create_index`; undefined: the user may not read it. */
  autoCreateIndex: string | undefined = 'true'
  /** The answer to a template of ours. */
  templateStatus = 200
  /** Names of indices that are aliases instead. */
  readonly aliases = new Set<string>()
  /** Whether the user may change settings. */
  mayManage = true
  /** Indices that were restored after their creation. */
  readonly replaced = new Set<string>()
  /** Indices whose shard was allocated without its documents. */
  readonly lost = new Set<string>()

  /** Shards that still start: `test-g1-payouts/1`. */
  readonly starting = new Set<string>()

  /** Answers about the own privileges; undefined without security. */
  privileges: object | undefined

  readonly request = sending(async ({ method, path, body, bulk }) => {
    this.asked.push(`${method} ${path}`)
    const [, name = '', operation, id = ''] = path.split('/')
    if (name === '_index_template') {
      if (method === 'GET' && !this.mayReadTemplates) throw new StopError('access_refused', 'Elasticsearch answers 403')
      if (method === 'GET') return { status: 200, body: { index_templates: [...this.templates] } }
      if (method !== 'PUT') return { status: this.templateStatus, body: {} }
      if (!this.mayPutTemplates) throw new StopError('access_refused', 'Elasticsearch answers 403')
      if (this.templateStatus === 200) this.putTemplate(operation ?? '', body as object)
      return { status: this.templateStatus, body: {} }
    }
    if (path === '/_cluster/settings') {
      if (this.autoCreateIndex === undefined) throw new StopError('access_refused', 'Elasticsearch answers 403')
      const defaults = { action: { auto_create_index: 'true' } }
      return { status: 200, body: { persistent: { action: { auto_create_index: this.autoCreateIndex } }, defaults } }
    }
    if (name === '_security') return { status: this.privileges ? 200 : 400, body: this.privileges ?? {} }
    if (name === '_bulk') {
      // Each update without a change is a read.
      const lines = String(bulk).trimEnd().split('\n')
      const items = lines.flatMap((line, at) => {
        if (at % 2 === 1) return []
        const { _index, _id } = JSON.parse(line).update
        const _source = this.documents.get(`${_index}/${_id}`)
        const missing = { status: 404, error: { type: 'document_missing_exception' } }
        const found = { status: 200, result: 'noop', _version: 1, get: { _source } }
        return [{ update: { _index, _id, ...(_source === undefined ? missing : found) } }]
      })
      return { status: 200, body: { items } }
    }
    if (name === '') return { status: 200, body: { cluster_uuid: 'elasticsearch-1' } }
    if (operation === '_settings' && method === 'PUT') return this.#change(name, body as Index['settings'])
    if (operation === '_settings') {
      const names = [...this.indices.keys()].filter(index => index.startsWith(name.replace('*', '')))
      const settings = (index: string) => {
        const uuid = this.replaced.has(index) ? 'another' : `id of ${index}`
        return { index: { uuid, number_of_shards: `${this.#shardsOf(index)}` } }
      }
      return { status: 200, body: Object.fromEntries(names.map(index => [index, { settings: settings(index) }])) }
    }
    if (operation === '_stats') {
      const id = (index: string) => (this.lost.has(index) ? 'another' : `history of ${index}`)
      const copy = (index: string) => ({
        routing: { primary: true },
        commit: { user_data: { history_uuid: id(index) } },
      })
      const shardsOf = (index: string) =>
        Array.from({ length: this.#shardsOf(index) }, (_, shard) => [shard, [copy(index)]] as const).filter(
          ([shard]) => !this.starting.has(`${index}/${shard}`),
        )
      const indices = [...this.indices.keys()].map(index => [index, { shards: Object.fromEntries(shardsOf(index)) }])
      return { status: 200, body: { indices: Object.fromEntries(indices) } }
    }
    const index = this.indices.get(name)
    if (operation === undefined) return this.#index(method, name, index, body as Index)
    if (index === undefined) return { status: 404, body: { error: { type: 'index_not_found_exception' } } }
    const key = `${name}/${decodeURIComponent(id)}`
    if (operation === '_create') {
      if (this.documents.has(key)) return { status: 409, body: {} }
      this.documents.set(key, structuredClone(body))
      return { status: 201, body: {} }
    }
    if (method === 'PUT') {
      this.documents.set(key, structuredClone(body))
      return { status: 200, body: {} }
    }
    const _source = this.documents.get(key)
    return _source === undefined
      ? { status: 404, body: { found: false } }
      : { status: 200, body: { found: true, _source } }
  })

  putTemplate(name: string, index_template: object): void {
    this.deleteTemplate(name)
    this.templates.push({ name, index_template })
  }

  deleteTemplate(name: string): void {
    const at = this.templates.findIndex(template => template.name === name)
    if (at >= 0) this.templates.splice(at, 1)
  }

  #shardsOf(index: string): number {
    return Number(this.indices.get(index)?.settings.index.number_of_shards ?? 1)
  }

  #change(name: string, { index: changes }: Index['settings']): Answer {
    if (!this.mayManage) throw new StopError('access_refused', 'Elasticsearch answers 403', { status: 403 })
    const settings = this.indices.get(name)?.settings.index ?? {}
    for (const [setting, value] of Object.entries(changes)) {
      if (value === null) delete settings[setting]
      else settings[setting] = value
    }
    return { status: 200, body: {} }
  }

  #index(method: string, name: string, index: Index | undefined, body: Index): Answer {
    if (method !== 'PUT') {
      return { status: index ? 200 : 404, body: index && { [this.aliases.has(name) ? `${name}-1` : name]: index } }
    }
    if (index) return { status: 400, body: { error: { type: 'resource_already_exists_exception' } } }
    this.indices.set(name, structuredClone(body))
    return { status: 200, body: {} }
  }

  control(id: string): unknown {
    return this.documents.get(`test-control/${id}`)
  }
}
