/**
 * In: a search, or the names of documents. Out: the answer of Elasticsearch as bytes, not parsed. Also: the ids of
 *   indices.
 * Promises: each read is one request within the time of its signal, and never more than READS_IN_FLIGHT_MAX run at
 *   once. Bytes that arrive count against the budget of answers. Nodes are asked in turn, each at most once for a read.
 *   A node that answers 502, 503 or 504 is left out, and another one gets the read. A silent node is left out after the
 *   first read whose time is up. If no node can answer a read, those with 502, 503 or 504 are not left out: then the
 *   cause is not the node. A read whose credentials are refused is repeated once if their file has others by now.
 * Can go wrong: Elasticsearch is away, slow, blocked or refusing, or there is too much → `unavailable`. The error body
 *   is dropped unread, because its reasons quote values. No node answers in time, or all answer 502, 503 or 504 → the
 *   error or the status of the last one.
 */
import type { Readable } from 'node:stream'
import type { Client, ClientOptions } from '@elastic/elasticsearch'
import { ClusterConnectionPool, type GetConnectionOptions } from '@elastic/transport'
import { context, propagation } from '@opentelemetry/api'
import { hiddenAmong } from '../../../schemas/stored/hiding-roles.ts'
import { INDEX_ID_FILTER, indexIdsIn, OBSTACLES_FILTER, obstacleIn } from '../../../schemas/stored/index-ids.ts'
import type { SearchTarget } from '../../../schemas/stored/layout.ts'
import { shardIdsIn, shardIdsRequest } from '../../../schemas/stored/shard-ids.ts'
import { abortRefusal, isTimeUp, OK, Refusal, unavailable } from '../../runtime/index.ts'
import { ELASTICSEARCH_OVERLOADED } from '../elasticsearch/client.ts'
import { isUnknownPath, type OwnRoles, readOwnRoles, type Told } from '../elasticsearch/own-roles.ts'
import { type authOf, type Credentials, noCredentials } from '../elasticsearch-credentials.ts'
import { ANSWER_BYTES_MAX, MASTER_WAIT, READ_TIME_MAX, READS_IN_FLIGHT_MAX } from '../limits.ts'
import { type AnswerBudget, type CountBytes, collect } from './answer-budget.ts'
import type { DocumentName } from './slice-documents.ts'

/** No answer: it exceeds ANSWER_BYTES_MAX, or Elasticsearch has no memory or no room in its queue for it (429). */
export type TooMuch = 'too_large' | 'overloaded'

/** Returns the answer, or why the caller must ask for fewer records. */
export type Search = (
  where: Pick<SearchTarget, 'index' | 'routing'>,
  body: string,
  signal: AbortSignal,
  /** Called with the bytes of the answer as they arrive. Without this callback they count for the process. */
  arrived?: CountBytes,
) => Promise<Buffer | TooMuch>
export type MultiGet = (
  names: readonly DocumentName[],
  signal: AbortSignal,
  limits?: {
    /** As of a search. */
    readonly arrived?: CountBytes | undefined
    /** Bytes at which the rest of the answer is not read: `elasticsearch_too_large`. */
    readonly bytesMax?: number
  },
) => Promise<Buffer>
/**
 * Returns the ids of these indices by name, from the cluster state: no shard is read. Indices that are missing, or
 * that no role shows to this user, are left out.
 * @param withShards also returns the ids of their primary shards, as `ShardIds`. This needs the right `monitor`
 * @throws Refusal `runtime_fields`; `index_closed`; `reads_blocked`; `documents_hidden` if a role hides a part of one
 *   from this user; `roles_unknown` if no answer tells that, and one did before, or it is asked `withShards`
 */
export type IndexIds = (
  names: readonly string[],
  signal: AbortSignal,
  withShards?: boolean,
) => Promise<ReadonlyMap<string, string>>
export type SearchClient = { readonly search: Search; readonly multiGet: MultiGet; readonly indexIds: IndexIds }

/** The one call of the official client that returns an answer unparsed. */
export type Transport = (
  request: { method: 'POST'; path: string; body: string } | { method: 'GET'; path: string },
  options: { asStream: true; meta: true; maxRetries: number; headers: Record<string, string>; signal: AbortSignal },
) => Promise<{
  statusCode: number | null
  body: Readable
  headers?: Readonly<Record<string, unknown>> | null
}>

type Asked = Parameters<Transport>[0]
type Limits = NonNullable<Parameters<MultiGet>[2]>
type Operation = 'search' | 'multi_get' | 'index_ids'

export type Observe = (operation: Operation, outcome: string, milliseconds: number) => void

type Parts = {
  readonly transport: Transport
  /** Nodes besides the first: a read is sent to another node if one cannot be reached, or cannot answer. */
  readonly otherNodes: number
  readonly observe: Observe
  readonly elapsed: () => number
  /** Budget of the whole process. A command that reads page by page needs none. */
  readonly budget?: AnswerBudget
}

const HEADERS = { 'content-type': 'application/json', accept: 'application/json' }

/** Creates the reads of Elasticsearch. Each rejects only with a Refusal `unavailable`. */
export const createSearchClient = (parts: Parts): SearchClient => {
  const { transport, otherNodes, observe, elapsed, budget } = parts
  let inFlight = 0
  let wasTold = false

  const ask = async (
    request: Asked,
    signal: AbortSignal,
    { arrived, bytesMax = ANSWER_BYTES_MAX }: Limits = {},
  ): Promise<Buffer | TooMuch> => {
    const options = { asStream: true, meta: true, maxRetries: otherNodes, headers: HEADERS, signal } as const
    const answer = await transport(request, options)
    if (answer.statusCode === OK) {
      if (arrived) return collect(answer.body, bytesMax, arrived)
      const reservation = budget?.open(undefined)
      return collect(answer.body, bytesMax, bytes => reservation?.add(bytes)).finally(() => reservation?.close())
    }
    // Read to the end and dropped, so that the connection can be reused.
    answer.body.on('error', () => undefined).resume()
    if (request.path.startsWith('/_security/') && tellsNothing.has(answer.statusCode)) {
      const isOfElasticsearch = answer.headers?.['x-elastic-product'] === 'Elasticsearch'
      return isOfElasticsearch && isUnknownPath(answer.statusCode) ? QUESTION_UNKNOWN : NOTHING_TOLD
    }
    if (answer.statusCode === ELASTICSEARCH_OVERLOADED) return 'overloaded'
    throw new Refusal('unavailable', { reason: `elasticsearch_status_${answer.statusCode}` })
  }

  const read = async (operation: Operation, request: Asked, signal: AbortSignal, limits?: Limits) => {
    if (inFlight >= READS_IN_FLIGHT_MAX) throw unavailable('reads_in_flight')
    const begun = elapsed()
    let outcome = 'ok'
    inFlight++
    try {
      const answer = await ask(request, signal, limits)
      if (typeof answer === 'string') outcome = answer
      return answer
    } catch (error) {
      const failure = signal.aborted ? abortRefusal(signal) : asRefusal(error)
      outcome = failure.reason ?? failure.code
      throw failure
    } finally {
      inFlight--
      observe(operation, outcome, elapsed() - begun)
    }
  }

  const requireSeesAll = (roles: OwnRoles, indices: readonly string[], isForSignature: boolean): void => {
    if (typeof roles === 'object') {
      if (hiddenIn(roles.privileges, indices)) throw unavailable('documents_hidden')
      wasTold = true
    } else if (roles === 'not told' && (wasTold || isForSignature)) throw unavailable('roles_unknown')
  }

  return {
    search: async ({ index, routing }, body, signal, arrived) => {
      const routed = routing === undefined ? '' : `&routing=${routing}`
      const path = `/${index}/_search?allow_partial_search_results=false${routed}`
      return read('search', { method: 'POST', path, body }, signal, { arrived })
    },
    multiGet: async (names, signal, limits) => {
      // One preference for all: a position is always read from the same shard copy, so that it never seems to go back.
      const path = '/_mget?realtime=true&preference=published'
      const answer = await read('multi_get', { method: 'POST', path, body: multiGetBody(names) }, signal, limits)
      return requireAnswer(answer)
    },
    indexIds: async (names, signal, withShards = false) => {
      const fields = `${INDEX_ID_FILTER},${OBSTACLES_FILTER}`
      const query = `ignore_unavailable=true&master_timeout=${MASTER_WAIT}&filter_path=${fields}`
      const path = `/${names.join()}?${query}`
      const askRoles = async (question: string): Promise<Told> =>
        toldIn(requireAnswer(await read('index_ids', { method: 'GET', path: question }, signal)))
      const [answer, roles, shards] = await Promise.all([
        read('index_ids', { method: 'GET', path }, signal),
        readOwnRoles(askRoles),
        withShards ? read('index_ids', { method: 'GET', path: shardIdsPath(names) }, signal) : undefined,
      ])
      const ids = readIndexIds(requireAnswer(answer))
      requireSeesAll(roles, [...ids.keys()], withShards)
      return shards === undefined ? ids : new Map([...ids, ...readShardIds(requireAnswer(shards), names)])
    },
  }
}

/** The statuses without security, for an API key with roles of its own, and behind a proxy that permits no question. */
const tellsNothing: ReadonlySet<number | null> = new Set([400, 403, 404, 405, 410, 501])
const NOTHING_TOLD = Buffer.alloc(0)
const QUESTION_UNKNOWN = Buffer.alloc(0)

const toldIn = (answer: Buffer): Told => {
  if (answer === QUESTION_UNKNOWN) return 'unknown'
  if (answer === NOTHING_TOLD) return 'refused'
  try {
    return { answer: JSON.parse(answer.toString('utf8')) }
  } catch {
    throw unavailable('elasticsearch_malformed_privileges')
  }
}

const hiddenIn = (privileges: unknown, indices: readonly string[]): boolean => {
  try {
    return hiddenAmong(privileges, indices) !== undefined
  } catch {
    throw unavailable('elasticsearch_malformed_privileges')
  }
}

/** Returns the answer. @throws Refusal `unavailable` if there is none */
export const requireAnswer = (answer: Buffer | TooMuch): Buffer => {
  if (typeof answer === 'string') throw unavailable(`elasticsearch_${answer}`)
  return answer
}

/** @throws Refusal: see `obstacleIn`. A projector stops or waits, too, but perhaps none runs */
const readIndexIds = (answer: Buffer): Map<string, string> => {
  const { ids, obstacle } = parseIndices(answer)
  if (obstacle !== undefined) throw unavailable(obstacle)
  return ids
}

const shardIdsPath = (names: readonly string[]): string => {
  const { path, query } = shardIdsRequest(names.join())
  return `${path}?${new URLSearchParams({ ...query, ignore_unavailable: 'true' })}`
}

const readShardIds = (answer: Buffer, names: readonly string[]): [shard: string, id: string][] => {
  try {
    return Object.entries(shardIdsIn(JSON.parse(answer.toString('utf8')), names))
  } catch {
    throw unavailable('elasticsearch_malformed_index_ids')
  }
}

/** Drops the parser's error, because its message quotes the answer. */
const parseIndices = (answer: Buffer): { ids: Map<string, string>; obstacle: ReturnType<typeof obstacleIn> } => {
  try {
    const indices: unknown = JSON.parse(answer.toString('utf8'))
    return { ids: indexIdsIn(indices), obstacle: obstacleIn(indices as object) }
  } catch {
    throw unavailable('elasticsearch_malformed_index_ids')
  }
}

const multiGetBody = (names: readonly DocumentName[]): string =>
  JSON.stringify({
    docs: names.map(({ _index, _id, routing, form }) => ({ _index, _id, routing, ...(form === 'size' && SIZE_ONLY) })),
  })
const SIZE_ONLY = { _source: ['seq', 'body_bytes'] }

/** Keeps only the kind of a client error, because the error contains request and answer. */
const asRefusal = (error: unknown): Refusal => {
  if (error instanceof Refusal) return error
  const name = error instanceof Error ? error.name : 'unknown'
  return new Refusal('unavailable', { reason: `elasticsearch_${name.replace(/Error$/, '').toLowerCase()}` })
}

// Below: the transport of a read, from node to node.

type Options = Parameters<Transport>[1]
type Connection = Client['connectionPool']['connections'][number]
/** The nodes that got a read, in order: the errors of the client do not name them. */
type Route = Connection[]

/**
 * The nodes, and which ones are left out. A node that is left out gets a `HEAD /` after 60 s. It is asked again unless
 * it is silent or answers 502, 503 or 504. By default the time would grow with each failure, up to half an hour. If all
 * nodes are left out, all are asked.
 */
export class Nodes extends ClusterConnectionPool {
  override resurrectTimeoutCutoff = 0

  override getConnection(options: GetConnectionOptions): Connection | null {
    const { route = [] } = (options.context ?? {}) as { readonly route?: Route }
    const isNew = (one: Connection) => !route.includes(one)
    // `find` returns a node that is left out, once this read has asked all others.
    const connection =
      super.getConnection({ ...options, filter: isNew }) ?? this.connections.find(isNew) ?? super.getConnection(options)
    if (connection) route.push(connection)
    return connection
  }
}

/** Creates the transport of reads. It asks the nodes in turn. */
export const createTransport = (
  { transport, connectionPool }: Client,
  credentials: Credentials = noCredentials,
  elapsed: () => number = () => performance.now(),
): Transport => {
  const answeredAt = new WeakMap<Connection, number>()

  /** A slow read alone does not make a node silent: it answers others meanwhile. */
  const isSilentSince = (connection: Connection, begun: number) => (answeredAt.get(connection) ?? 0) < begun

  const send = async (request: Asked, options: Options, route: Route, header: ReturnType<Credentials['header']>) => {
    const headers = { ...options.headers, ...header }
    // `traceparent`, if an OpenTelemetry SDK is loaded.
    propagation.inject(context.active(), headers)
    const begun = elapsed()
    // The client goes on to another node after an error of the connection.
    const maxRetries = Math.max(0, options.maxRetries - route.length)
    try {
      const answer = await transport.request<Readable>(request, { ...options, maxRetries, headers, context: { route } })
      const { connection } = answer.meta
      if (connection) {
        answeredAt.set(connection, elapsed())
        // For streams the client's pool does not: a failed node would stay left out.
        connectionPool.markAlive(connection)
      }
      return answer
    } catch (error) {
      const asked = route.at(-1)
      if (asked && isTimeUp(options.signal) && isSilentSince(asked, begun)) connectionPool.markDead(asked)
      throw error
    }
  }

  return async (request, options) => {
    const route: Route = []
    const unable = new Set<Connection>()
    const takeBack = () => unable.forEach(connection => void connectionPool.markAlive(connection))
    let mayRenew = true
    for (;;) {
      const header = credentials.header()
      const answer = await send(request, options, route, header).catch((error: unknown) => {
        takeBack()
        throw error
      })
      const { connection } = answer.meta
      if (answer.statusCode === 401 && mayRenew && credentials.renew(header)) {
        mayRenew = false
        // This node answers, and may be the only one: it is asked again.
        route.pop()
      } else if (!isUnable(answer.statusCode)) return answer
      else if (connection) {
        unable.add(connection)
        connectionPool.markDead(connection)
      }
      if (route.length > options.maxRetries) {
        takeBack()
        return answer
      }
      drop(answer.body)
    }
  }
}

/** Whether a node cannot answer any read: without a master it answers 503 at once. */
const isUnable = (status: number | null): boolean => status === 502 || status === 503 || status === 504

/** Reads an answer to its end, so that the connection can be used again. */
const drop = (body: Readable): void => void body.on('error', () => undefined).resume()

/** Returns the options for these settings. @param ca the contents of ELASTICSEARCH_CA_FILE */
export const clientOptions = (
  nodes: readonly string[],
  auth: ReturnType<typeof authOf>,
  ca: string | undefined,
): ClientOptions => ({
  nodes: [...nodes],
  ...(auth === undefined ? {} : { auth }),
  ...(ca === undefined ? {} : { tls: { ca } }),
  requestTimeout: READ_TIME_MAX,
  maxRetries: 0,
  // The default pool asks a node that failed once or twice nearly as often as the others.
  ConnectionPool: Nodes,
  // No read waits for a node that is still silent.
  resurrectStrategy: 'ping',
  // Each read sets its own transport options. The client must send nothing else.
  sniffOnStart: false,
  sniffInterval: false,
  sniffOnConnectionFault: false,
  enableMetaHeader: false,
  compression: false,
  redaction: { type: 'remove' },
})
