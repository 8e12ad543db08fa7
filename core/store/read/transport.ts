/**
 * The transport of a read, from node to node. In: a request. Out: the answer of Elasticsearch, whatever its status is,
 *   before its body has arrived.
 * Promises: nodes are asked in turn, each at most once for a read. A node that answers 502, 503 or 504 is left out, and
 *   another one gets the read. A silent node is left out after the first read whose time is up. If no node can answer a
 *   read, those with 502, 503 or 504 are not left out: then the cause is not the node. A read whose credentials are
 *   refused is repeated once if their file has others by now.
 * Can go wrong: no node answers in time, or all answer 502, 503 or 504 → the error or the status of the last one.
 */
import type { Readable } from 'node:stream'
import type { Client, ClientOptions } from '@elastic/elasticsearch'
import { ClusterConnectionPool, type GetConnectionOptions } from '@elastic/transport'
import { context, propagation } from '@opentelemetry/api'
import { isTimeUp } from '../../runtime/index.ts'
import { type authOf, type Credentials, noCredentials } from '../elasticsearch-credentials.ts'
import { READ_TIME_MAX } from '../limits.ts'

export type Asked = { method: 'POST'; path: string; body: string } | { method: 'GET'; path: string }
/** An answer whose body arrives now. */
export type Received = {
  statusCode: number | null
  body: Readable
  headers?: Readonly<Record<string, unknown>> | null
}
/** Returns what an answer with another status than 200 says, or undefined if it only says that the read failed. */
export type Otherwise<Said extends string> = (answer: Received) => Said | undefined
export type Transport = (request: Asked, signal: AbortSignal) => Promise<Received>

const HEADERS = { 'content-type': 'application/json', accept: 'application/json' }

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

/**
 * Creates the transport of reads. It asks the nodes in turn.
 * @param otherNodes nodes besides the first: a read is sent to another one if one cannot be reached, or cannot answer
 */
export const createTransport = (
  { transport, connectionPool }: Client,
  otherNodes: number,
  credentials: Credentials = noCredentials,
  elapsed: () => number = () => performance.now(),
): Transport => {
  const answeredAt = new WeakMap<Connection, number>()

  /** A slow read alone does not make a node silent: it answers others meanwhile. */
  const isSilentSince = (connection: Connection, begun: number) => (answeredAt.get(connection) ?? 0) < begun

  const send = async (request: Asked, signal: AbortSignal, route: Route, header: ReturnType<Credentials['header']>) => {
    const headers = { ...HEADERS, ...header }
    // `traceparent`, if an OpenTelemetry SDK is loaded.
    propagation.inject(context.active(), headers)
    const begun = elapsed()
    // The client goes on to another node after an error of the connection.
    const maxRetries = Math.max(0, otherNodes - route.length)
    const options = { asStream: true, meta: true, maxRetries, headers, signal, context: { route } } as const
    try {
      const answer = await transport.request<Readable>(request, options)
      const { connection } = answer.meta
      if (connection) {
        answeredAt.set(connection, elapsed())
        // For streams the client's pool does not: a failed node would stay left out.
        connectionPool.markAlive(connection)
      }
      return answer
    } catch (error) {
      const asked = route.at(-1)
      if (asked && isTimeUp(signal) && isSilentSince(asked, begun)) connectionPool.markDead(asked)
      throw error
    }
  }

  return async (request, signal) => {
    const route: Route = []
    const unable = new Set<Connection>()
    const takeBack = () => unable.forEach(connection => void connectionPool.markAlive(connection))
    let mayRenew = true
    for (;;) {
      const header = credentials.header()
      const answer = await send(request, signal, route, header).catch((error: unknown) => {
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
      if (route.length > otherNodes) {
        takeBack()
        return answer
      }
      dropAnswer(answer)
    }
  }
}

/** Whether a node cannot answer any read: without a master it answers 503 at once. */
const isUnable = (status: number | null): boolean => status === 502 || status === 503 || status === 504

/** Reads an answer to its end, so that the connection can be used again. */
export const dropAnswer = ({ body }: Received): void => void body.on('error', () => undefined).resume()

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
