/**
 * Stands before Elasticsearch and refuses with 403 each request that a role does not allow, as Elasticsearch's security
 * does: the Elasticsearch of these tests has none. It knows the requests that this project sends, and refuses others.
 * With credentials it speaks TLS, and refuses all others with 401.
 */
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { type ElasticsearchIndexPrivilege, type ElasticsearchRole, fillIn } from '../../schemas/access.ts'
import { OWN_PRIVILEGES_PATH } from '../../schemas/stored/hiding-roles.ts'
import type { CertificateFiles } from '../../services/cluster/certificates.ts'
import type { Scope } from './scope.ts'

type ClusterPrivilege = ElasticsearchRole['cluster'][number]['privilege']
/** A privilege on the cluster, or on an index or a pattern. */
type Needed = { readonly cluster: ClusterPrivilege } | { readonly index: string; readonly privilege: IndexPrivilege }
type IndexPrivilege = ElasticsearchIndexPrivilege

export type Guard = { readonly url: string; readonly refused: readonly string[] }

type Told = {
  /** Returns the entries of the answer about the own privileges, in place of those of the role. */
  readonly told?: () => readonly object[] | undefined
}
type GuardSecurity = {
  /** Of the server. */
  readonly certificate: CertificateFiles
  /** Returns the only header that is accepted. */
  readonly authorization: () => string
}

/** @param values fill in the names of the role */
export const startGuard = async (
  scope: Scope,
  target: string,
  role: ElasticsearchRole,
  values: Readonly<Record<string, string>>,
  { certificate, authorization, told }: Partial<GuardSecurity> & Told = {},
): Promise<Guard> => {
  const refused: string[] = []
  const refuse = (answer: ServerResponse, status: number): void => {
    answer.writeHead(status, { 'content-type': 'application/json', 'x-elastic-product': 'Elasticsearch' })
    answer.end(`{"error":{"type":"security_exception","reason":"refused"},"status":${status}}`)
  }
  const onRequest = async (asked: IncomingMessage, answer: ServerResponse): Promise<void> => {
    const body = await buffer(asked)
    if (authorization !== undefined && asked.headers.authorization !== authorization()) return refuse(answer, 401)
    if (asked.url === OWN_PRIVILEGES_PATH) {
      const own = role.indices.map(({ names, privileges }) => ({
        names: names.map(name => fillIn(name, values)),
        privileges,
        allow_restricted_indices: false,
      }))
      answer.writeHead(200, { 'content-type': 'application/json', 'x-elastic-product': 'Elasticsearch' })
      const cluster = role.cluster.map(({ privilege }) => privilege)
      answer.end(JSON.stringify({ cluster, global: [], indices: told?.() ?? own, applications: [], run_as: [] }))
      return
    }
    const missing = neededFor(asked, body)?.filter(needed => !allows(role, needed, values))
    if (missing?.length !== 0) {
      refused.push(`${asked.method} ${asked.url}: ${JSON.stringify(missing ?? 'unknown')}`)
      return refuse(answer, 403)
    }
    const { hostname, port } = new URL(target)
    const forwarded = request(
      { hostname, port, path: asked.url, method: asked.method, headers: asked.headers },
      given => {
        answer.writeHead(given.statusCode ?? 500, given.headers)
        given.pipe(answer)
      },
    )
    forwarded.on('error', () => answer.destroy())
    forwarded.end(body)
  }
  const server =
    certificate === undefined
      ? createServer(onRequest)
      : createTlsServer({ cert: readFileSync(certificate.cert), key: readFileSync(certificate.key) }, onRequest)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  scope.onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `${certificate === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    refused,
  }
}

const allows = (role: ElasticsearchRole, needed: Needed, values: Readonly<Record<string, string>>): boolean => {
  if ('cluster' in needed) return role.cluster.some(({ privilege }) => privilege === needed.cluster)
  return role.indices.some(
    ({ names, privileges }) =>
      privileges.includes(needed.privilege) && names.some(name => matches(fillIn(name, values), needed.index)),
  )
}

/** Elasticsearch expands a pattern to the indices that the role names: any of them will do. */
const matches = (name: string, index: string): boolean => {
  if (index.endsWith('*')) return name.replace(/^\//, '').startsWith(index.slice(0, -1))
  return name.startsWith('/') ? new RegExp(`^(?:${name.slice(1, -1)})$`).test(index) : name === index
}

const MONITORED = /^\/(?:$|_cluster\/(?:health|settings|state)|_nodes\/)/

/** Returns undefined for an unknown request. */
const neededFor = ({ method = '', url = '' }: IncomingMessage, body: Buffer): Needed[] | undefined => {
  const [path = ''] = url.split('?')
  const [first = '', second, third] = path.slice(1).split('/').map(decodeURIComponent)
  const each = (privilege: IndexPrivilege, names = first): Needed[] =>
    names.split(',').map(index => ({ index, privilege }))
  if (method === 'GET' && MONITORED.test(path)) return [{ cluster: 'monitor' }]
  if (first === '_index_template') return [{ cluster: 'manage_index_templates' }]
  if (first === '_bulk') return actionsIn(body)
  if (first === '_mget') return docsIn(body).map(index => ({ index, privilege: 'read' }))
  // The request that opened the point in time named the index.
  if ((first === '_search' && body.includes('"pit"')) || (first === '_pit' && method === 'DELETE')) return []
  if (first === '_resolve') return each('view_index_metadata', third)
  if (first.startsWith('_')) return undefined
  switch (second) {
    case undefined:
      if (method === 'GET') return each('view_index_metadata')
      return method === 'PUT' ? each('create_index') : method === 'DELETE' ? each('delete_index') : undefined
    case '_settings':
      return method === 'GET' ? each('view_index_metadata') : undefined
    case '_stats':
      return each('monitor')
    case '_search':
    case '_count':
    case '_pit':
      return each('read')
    case '_refresh':
      return each('maintenance')
    case '_create':
      return each('index')
    case '_doc':
      return each(method === 'GET' ? 'read' : method === 'DELETE' ? 'delete' : 'index')
  }
  return undefined
}

type Docs = { readonly docs: readonly { readonly _index: string }[] }
const docsIn = (body: Buffer): string[] => [
  ...new Set((JSON.parse(body.toString()) as Docs).docs.map(doc => doc._index)),
]

type Action = Readonly<Record<string, { readonly _index: string }>>

/** An action is followed by a document, except for `delete`. */
const actionsIn = (body: Buffer): Needed[] => {
  const lines = body.toString().trimEnd().split('\n')
  const needed = new Map<string, Needed>()
  for (let at = 0; at < lines.length; at++) {
    const [[operation, { _index: index }] = ['', { _index: '' }]] = Object.entries(
      JSON.parse(lines[at] ?? '') as Action,
    )
    const privilege = operation === 'delete' ? 'delete' : 'index'
    needed.set(`${privilege} ${index}`, { index, privilege })
    if (operation !== 'delete') at++
  }
  return [...needed.values()]
}
