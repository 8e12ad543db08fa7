/** The options of the official Elasticsearch client, and how this API sends requests through it. */
import type { Readable } from 'node:stream'
import type { Client, ClientOptions } from '@elastic/elasticsearch'
import { ClusterConnectionPool } from '@elastic/transport'
import { context, propagation } from '@opentelemetry/api'
import { type authOf, type Credentials, noCredentials } from '../../schemas/stored/credentials.ts'
import { READ_TIME_MAX } from '../limits.ts'
import type { Transport } from './client.ts'

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
  // Without a ping before, which is another request.
  resurrectStrategy: 'optimistic',
  // Each read sets its own transport options. The client must send nothing else.
  sniffOnStart: false,
  sniffInterval: false,
  sniffOnConnectionFault: false,
  enableMetaHeader: false,
  compression: false,
  redaction: { type: 'remove' },
})

/**
 * Nodes in turn, except those that failed. A failed node is asked again after 60 s. By default a longer time would
 * follow each further failure, up to half an hour. If all have failed, all are asked.
 */
class Nodes extends ClusterConnectionPool {
  override resurrectTimeoutCutoff = 0
}

/**
 * Sends each read to one node, and to another one if it answers that it cannot. A node without a master does so, and
 * answers at once: half of all reads of two nodes would fail. The node that could not is not asked for a while. If no
 * node can, all are asked as before: then the cause is not the node. A request whose credentials are refused is
 * repeated once if their file has others by now.
 */
export const createTransport = (
  { transport, connectionPool }: Client,
  credentials: Credentials = noCredentials,
): Transport => {
  const send = async (request: Asked, options: Options, header: ReturnType<Credentials['header']>) => {
    const headers = { ...options.headers, ...header }
    // `traceparent`, if an OpenTelemetry SDK is loaded.
    propagation.inject(context.active(), headers)
    const answer = await transport.request<Readable>(request, { ...options, headers })
    // For streams the client's pool does not: a failed node would stay dead.
    if (answer.meta.connection) connectionPool.markAlive(answer.meta.connection)
    return answer
  }
  const sendAuthorized = async (request: Asked, options: Options) => {
    const header = credentials.header()
    const answer = await send(request, options, header)
    if (answer.statusCode !== 401 || !credentials.renew(header)) return answer
    drop(answer.body)
    return send(request, options, credentials.header())
  }
  return async (request, options) => {
    const refusing = new Set<Connection>()
    const markAllAlive = () => refusing.forEach(connection => void connectionPool.markAlive(connection))
    for (let others = options.maxRetries; ; others--) {
      const answer = await sendAuthorized(request, options).catch((error: unknown) => {
        markAllAlive()
        throw error
      })
      if (!isUnable(answer.statusCode)) return answer
      const { connection } = answer.meta
      if (connection) {
        refusing.add(connection)
        connectionPool.markDead(connection)
      }
      if (others === 0) {
        markAllAlive()
        return answer
      }
      drop(answer.body)
    }
  }
}

type Asked = Parameters<Transport>[0]
type Options = Parameters<Transport>[1]
type Connection = Client['connectionPool']['connections'][number]

const isUnable = (status: number | null): boolean => status === 502 || status === 503 || status === 504

/** Reads an answer to its end, so that the connection can be used again. */
const drop = (body: Readable): void => void body.on('error', () => undefined).resume()
