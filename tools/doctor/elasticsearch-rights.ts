/**
 * Tries each right of an identity in Elasticsearch. With its security on, Elasticsearch says which privileges the user
 * has. Without security, it sends requests that change nothing: to a generation `doctor` that does not exist, with a
 * condition that no document meets, or for an index with 0 shards.
 */

import { StopError, Unanswered } from '../../core/runtime/index.ts'
import type { Request, Send, Sight } from '../../core/store/index.ts'
import {
  type ElasticsearchIndexPrivilege,
  type ElasticsearchRole,
  fillIn,
  type IdentityName,
} from '../../schemas/access.ts'
import { readSight } from '../live.ts'
import { type Finding, failed, notTried, ok, warning } from './finding.ts'

type ClusterPrivilege = ElasticsearchRole['cluster'][number]['privilege']
type Values = Readonly<Record<string, string>>

/** Returns names that a pattern of the role matches: of a generation that does not exist. */
const exampleNames = (pattern: string, values: Values): string[] => {
  const name = fillIn(pattern, values)
  if (!name.startsWith('/')) return [name]
  const [, before = '', kinds = ''] = /^\/(.*)\[a-z\]\[a-z0-9\]\*-\((.*)\)\/$/.exec(name) ?? []
  return kinds.split('|').map(kind => `${before}doctor-${kind}`)
}

export const tryElasticsearchRights = async (
  name: IdentityName,
  role: ElasticsearchRole,
  values: Values,
  send: Send,
  signal: AbortSignal,
): Promise<Finding[]> => {
  const has = await askPrivileges(role, values, send, signal)
  const mend = `give the role of deploy/access/elasticsearch-roles/${name}.json to the user or API key (docs/access.md)`
  const findingOf = (check: string, refused: readonly string[]): Finding =>
    refused.length === 0 ? ok(check) : failed(check, `Elasticsearch refuses it on ${refused.join(', ')}`, mend)
  const findings: Finding[] = []
  for (const { privilege } of role.cluster) {
    const allowed = has?.cluster[privilege] ?? (await isAccepted(clusterRequests[privilege](values), send, signal))
    findings.push(findingOf(`Elasticsearch: ${privilege}`, allowed ? [] : ['the cluster']))
  }
  for (const { names, privileges } of role.indices) {
    const indices = names.flatMap(pattern => exampleNames(pattern, values))
    for (const privilege of privileges) {
      const check = `Elasticsearch: ${privilege}`
      const request = indexRequests[privilege]
      if (has === undefined && request === undefined) {
        findings.push(notTried(check, 'Elasticsearch has no security to ask, and the request could delete an index'))
        continue
      }
      const refused: string[] = []
      for (const index of indices) {
        const told = has?.index[index]?.[privilege]
        const allowed = told ?? (request !== undefined && (await isAccepted(request(index), send, signal)))
        if (!allowed) refused.push(index)
      }
      findings.push(findingOf(check, refused))
    }
  }
  return findings
}

const SEES_ALL = 'Elasticsearch: sees all documents'
const GIVE_WHOLE = 'give this user no role with query or field_security for these indices (docs/access.md)'
const LOOK_AT_KEY =
  'as an administrator, make sure that none of the roles in GET /_security/api_key?with_limited_by=true has query or field_security'

/** A role that hides documents gives short answers with status 200. */
export const tryHidingRoles = async (
  { indices }: ElasticsearchRole,
  values: Values,
  send: Send,
  signal: AbortSignal,
): Promise<Finding[]> => {
  const names = indices.flatMap(({ names }) => names.flatMap(pattern => exampleNames(pattern, values)))
  const asked: Send = request => send(request, signal)
  try {
    return [findingOfSight[await readSight(names, asked)]]
  } catch (error) {
    if (!(error instanceof StopError && error.code === 'documents_hidden')) throw error
    return [failed(SEES_ALL, `${error.code}: ${error.message}`, GIVE_WHOLE)]
  }
}

const NOT_ALL_TOLD = warning(SEES_ALL, 'Elasticsearch does not tell all roles of this user or API key', LOOK_AT_KEY)
const findingOfSight: Readonly<Record<Sight, Finding>> = {
  all: ok(SEES_ALL),
  'no security': notTried(SEES_ALL, 'Elasticsearch has no security: it hides nothing'),
  'all of the roles of its key': NOT_ALL_TOLD,
  'not told': NOT_ALL_TOLD,
}

const DOCUMENT = 'doctor'
/** No document meets this condition, because none has this id. */
const ofNoVersion = { if_seq_no: 0, if_primary_term: 1 }
const clusterRequests: Readonly<Record<ClusterPrivilege, (values: Values) => Request>> = {
  monitor: () => ({ method: 'GET', path: '/_cluster/health' }),
  manage_index_templates: values => ({
    method: 'POST',
    path: '/_index_template/_simulate',
    body: { index_patterns: [`${fillIn(`\${ELASTICSEARCH_INDEX_PREFIX}`, values)}-doctor`], priority: 0 },
  }),
}

/** Undefined: a right that is not tried by its request. */
const indexRequests: Readonly<Record<ElasticsearchIndexPrivilege, ((index: string) => Request) | undefined>> = {
  read: index => ({ method: 'GET', path: `/${index}/_doc/${DOCUMENT}` }),
  view_index_metadata: index => ({ method: 'GET', path: `/${index}` }),
  monitor: index => ({ method: 'GET', path: `/${index}/_stats/get` }),
  maintenance: index => ({ method: 'POST', path: `/${index}/_refresh` }),
  index: index => ({
    method: 'PUT',
    path: `/${index}/_doc/${DOCUMENT}`,
    query: { require_alias: true, ...ofNoVersion },
    body: {},
  }),
  create_index: index => ({ method: 'PUT', path: `/${index}`, body: { settings: { 'index.number_of_shards': 0 } } }),
  delete: index => ({
    method: 'DELETE',
    path: `/${index}/_doc/${DOCUMENT}`,
    query: ofNoVersion,
  }),
  delete_index: undefined,
}

/** Any other status than a refusal comes after the right was accepted. @throws StopError for wrong credentials */
const isAccepted = async (request: Request, send: Send, signal: AbortSignal): Promise<boolean> => {
  try {
    await send(request, signal)
    return true
  } catch (error) {
    if (isRefused(error)) return false
    throw error
  }
}

/** A proxy that permits no such question. */
const isOfProxy = (error: unknown): boolean => error instanceof Unanswered && [400, 404].includes(error.status)

const isRefused = (error: unknown): boolean => error instanceof StopError && error.where.status === 403

type Privileges = {
  readonly cluster: Readonly<Record<string, boolean>>
  readonly index: Readonly<Record<string, Readonly<Record<string, boolean>>>>
}

/** Returns undefined if Elasticsearch has no security, or refuses the question. */
const askPrivileges = async (
  { cluster, indices }: ElasticsearchRole,
  values: Values,
  send: Send,
  signal: AbortSignal,
): Promise<Privileges | undefined> => {
  const body = {
    cluster: cluster.map(({ privilege }) => privilege),
    index: indices.map(({ names, privileges }) => ({
      names: names.flatMap(pattern => exampleNames(pattern, values)),
      privileges,
    })),
  }
  try {
    const path = '/_security/user/_has_privileges'
    const answer = await send<Privileges>({ method: 'POST', path, body }, signal)
    return answer.status === 200 ? answer.body : undefined
  } catch (error) {
    const isUnknown = error instanceof StopError && error.code === 'write_refused'
    if (isRefused(error) || isUnknown || isOfProxy(error)) return undefined
    throw error
  }
}
