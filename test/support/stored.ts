/** Reads the stored documents of a test's prefix, without the projector or the API. */

import { randomBytes } from 'node:crypto'
import { inject } from 'vitest'
import { withTime } from '../../core/store/positions/times-cache.ts'
import type { Stream } from '../../schemas/events.ts'
import {
  apiKeysIndexOf,
  apiKeysParkedIndexOf,
  controlIndexOf,
  FIRST_GENERATION,
  indexOf,
  type Kind,
  kinds,
  ownFieldsOf,
  type PositionDocument,
  parkedId,
  positionId,
  type TimesDocument,
  templateNameOf,
  timesId,
} from '../../schemas/stored/documents.ts'
import { fetchFromElasticsearch } from './elasticsearch-requests.ts'
import { layoutOfFresh } from './layout.ts'
import type { Scope } from './scope.ts'

/** Returns a new prefix. Its indices are deleted with the scope, except on a test's own Elasticsearch. */
export const createPrefix = (scope: Scope, elasticsearch?: string): string => {
  const prefix = `test-${randomBytes(6).toString('hex')}`
  if (elasticsearch !== undefined) {
    ownAddresses.set(prefix, elasticsearch)
    return prefix
  }
  scope.onTestFinished(async () => {
    const indices = await indicesOf(prefix)
    if (indices.length > 0) await call('DELETE', `/${indices.join(',')}?ignore_unavailable=true`)
    await call('DELETE', `/_index_template/${templateNameOf(prefix)}`)
  })
  return prefix
}

/** Returns the addresses, with commas, of the Elasticsearch that holds a prefix, or a prefix within any text. */
export const elasticsearchOf = (prefix: string): string => {
  const [created = ''] = /test-[0-9a-f]{12}/.exec(prefix) ?? []
  return ownAddresses.get(created) ?? inject('elasticsearchUrl')
}
const ownAddresses = new Map<string, string>()

export const indicesOf = async (prefix: string): Promise<string[]> =>
  (json(await call('GET', `/_cat/indices/${prefix}-*?format=json&h=index`)) as { index: string }[]).map(
    ({ index }) => index,
  )

/** Returns the name of a kind in the first generation, of API keys, or of parked records of API keys. */
export const indexNamed = (prefix: string, kind: Kind | 'api-keys' | 'api-keys-parked' | 'control'): string => {
  switch (kind) {
    case 'api-keys':
      return apiKeysIndexOf(prefix)
    case 'api-keys-parked':
      return apiKeysParkedIndexOf(prefix)
    case 'control':
      return controlIndexOf(prefix)
    default:
      kind satisfies Kind
      return indexOf(prefix, FIRST_GENERATION, kind)
  }
}

/** The place of a name: of a kind of a generation, whose documents may be beside others in an index, or of an index. */
const placeOf = (name: string) => {
  const [, prefix = '', generation = '', ending = ''] = /^(.+)-([a-z][a-z0-9]*)-([a-z_]+)$/.exec(name) ?? []
  const kind = kinds.find(known => known === ending && !name.endsWith('-api-keys-parked'))
  if (kind === undefined) return undefined
  const layout = layoutOfFresh(prefix, generation)
  return { kind, layout, index: layout.indexOf(kind) }
}

/** Returns the index that has the documents of this name: that of a kind of a generation, or itself. */
export const indexWith = (name: string): string => placeOf(name)?.index ?? name

/** Returns the path of a document of this name. @param query of the request */
export const pathTo = (name: string, id: string, query: string): string => {
  const place = placeOf(name)
  const { routing } = place?.layout.addressOf(place.kind, id) ?? {}
  const routed = routing === undefined ? '' : `&routing=${routing}`
  return `/${indexWith(name)}/_doc/${encodeURIComponent(id)}?${query}${routed}`
}

export type Stored = { readonly id: string; readonly version: number; readonly source: Record<string, unknown> }
type Raw = Stored & { readonly routing: string | undefined }

/** Returns every document of this name, sorted by id. Without a refresh, only those that are searchable. */
export const allStored = async (name: string, options: { readonly refresh?: boolean } = {}): Promise<Stored[]> => {
  const kind = placeOf(name)?.kind
  const all = await allIn(indexWith(name), options)
  return all
    .filter(({ source }) => kind === undefined || (source.kind ?? kind) === kind)
    .map(({ id, version, source }) => ({ id, version, source: kind === undefined ? source : ownFieldsOf(source) }))
}

/** Returns every document of an index as it is, sorted by id. */
export const allIn = async (index: string, { refresh = true }: { readonly refresh?: boolean } = {}): Promise<Raw[]> => {
  if (refresh) await call('POST', `/${index}/_refresh`)
  const found: Raw[] = []
  // A point in time keeps to the same shard copies: each copy numbers its documents (`_shard_doc`) itself.
  const address = elasticsearchOf(index)
  const { id } = json(await call('POST', `/${index}/_pit?keep_alive=1m`)) as { id: string }
  const all = { size: 2_000, version: true, pit: { id, keep_alive: '1m' }, sort: ['_shard_doc'] }
  for (let after: unknown[] | undefined; ; ) {
    const page = await callAt(address, 'POST', '/_search', { ...all, ...(after && { search_after: after }) })
    const { hits } = (json(page) as Search).hits
    for (const { _id, _version, _source, _routing } of hits)
      found.push({ id: _id, version: _version, source: _source, routing: _routing })
    after = hits.at(-1)?.sort
    if (hits.length < all.size) break
  }
  await callAt(address, 'DELETE', '/_pit', { id })
  return found.sort((a, b) => (a.id < b.id ? -1 : 1))
}

/** Writes a document of this name as it is given, over the same version or an earlier one. */
export const overwrite = (name: string, { id, version, source }: Stored): Promise<Called> => {
  const place = placeOf(name)
  const fields = place === undefined ? '' : place.layout.storedWith(place.kind)
  const document = JSON.parse(`{${fields}${JSON.stringify(source).slice(1)}`)
  return call('PUT', pathTo(name, id, `version=${version}&version_type=external_gte&refresh=true`), document)
}

type Search = {
  hits: {
    hits: { _id: string; _version: number; _routing?: string; _source: Record<string, unknown>; sort: unknown[] }[]
  }
}

/** Returns the latest version of a document, searchable or not; undefined if it does not exist. */
export const storedById = async (name: string, id: string): Promise<Record<string, unknown> | undefined> => {
  const answer = await call('GET', pathTo(name, id, ''))
  if (answer.status === 404) return undefined
  const { _source } = json(answer) as { _source: Record<string, unknown> }
  return _source && placeOf(name) ? ownFieldsOf(_source) : _source
}

/** Overwrites a document, to damage it. */
export const store = async (index: string, id: string, document: object): Promise<void> => {
  json(await call('PUT', pathTo(index, id, 'refresh=true'), document))
}

export const deleteStored = async (index: string, id: string): Promise<void> => {
  json(await call('DELETE', pathTo(index, id, 'refresh=true')))
}

export type Parked = {
  readonly code: string
  readonly org_id?: string
  readonly type?: string
  readonly event_id?: string
  readonly key: Buffer | null
  readonly headers: readonly (readonly [string, Buffer | null])[]
  readonly value: Buffer | null
}

export const parkedAt = async (
  prefix: string,
  topic: string,
  { stream, partition, offset }: { readonly stream: Stream; readonly partition: number; readonly offset: number },
): Promise<Parked | undefined> => {
  const index = indexNamed(prefix, stream === 'events' ? 'parked' : 'api-keys-parked')
  const document = await storedById(index, parkedId(topic, partition, offset))
  return document && toParked(document)
}

export const toParked = (document: Record<string, unknown>): Parked => {
  const { body, ...fields } = document as { body: ParkedBody } & Omit<Parked, keyof ParkedBody>
  const bytes = (base64: string | null): Buffer | null => (base64 === null ? null : Buffer.from(base64, 'base64'))
  const headers = body.headers.map(([name, value]) => [name, bytes(value)] as const)
  return { ...fields, key: bytes(body.key), headers, value: bytes(body.value) }
}
type ParkedBody = { key: string | null; headers: [string, string | null][]; value: string | null }

/** Returns every projected document with its version as text, by index (without the prefix) and id. */
export const everythingProjected = async (prefix: string): Promise<Record<string, string[]>> => {
  const names = [...kinds, 'api-keys', 'api-keys-parked'] as const
  const all = await Promise.all(names.map(async kind => [kind, await allStored(indexNamed(prefix, kind))] as const))
  return Object.fromEntries(
    all.map(([kind, documents]) => [
      kind,
      documents.map(({ id, version, source }) => `${id} ${version} ${JSON.stringify(source)}`),
    ]),
  )
}

export type Position = PositionDocument['body']

export const readPosition = async (prefix: string, generation: string, partition: number): Promise<Position> => {
  const document = await storedById(controlIndexOf(prefix), positionId(generation, partition))
  if (document === undefined) throw new Error(`no position of ${generation} ${partition}`)
  const times = (await storedById(controlIndexOf(prefix), timesId(generation))) as TimesDocument | undefined
  return withTime((document as PositionDocument).body, times?.body.partitions[partition])
}

export const storePosition = (prefix: string, generation: string, partition: number, body: Position): Promise<void> =>
  store(controlIndexOf(prefix), positionId(generation, partition), { kind: 'position', body })

export const call = (method: string, path: string, body?: object): Promise<Called> =>
  callAt(elasticsearchOf(path), method, path, body)

/** Uses the first of several addresses, and the others if the connection to it fails. */
const callAt = async (addresses: string, method: string, path: string, body?: object): Promise<Called> => {
  const [address = '', ...others] = addresses.split(',')
  try {
    const answer = await fetchFromElasticsearch(`${address}${path}`, {
      method,
      ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    })
    return { status: answer.status, text: await answer.text() }
  } catch (error) {
    if (others.length === 0) throw error
    return callAt(others.join(), method, path, body)
  }
}
type Called = { readonly status: number; readonly text: string }

const json = ({ status, text }: Called): unknown => {
  if (status >= 300) throw new Error(`Elasticsearch answers ${status}: ${text}`)
  return JSON.parse(text)
}
