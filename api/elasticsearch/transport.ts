/**
 * In: one read of Elasticsearch. Out: the answer of a node, as a stream.
 * Promises: nodes are asked in turn. One that answers that it cannot is left out, and another one answers the read. One
 *   that is silent is left out after the first read whose time is up. If no node can, all are asked as before: then the
 *   cause is not the node. A read whose credentials are refused is repeated once if their file has others by now.
 * Can go wrong: no node answers in time, or none can → the answer or the error of the last one.
 */
import type { Readable } from 'node:stream'
import type { Client } from '@elastic/elasticsearch'
import { ClusterConnectionPool, type GetConnectionOptions } from '@elastic/transport'
import { context, propagation } from '@opentelemetry/api'
import { type Credentials, noCredentials } from '../../schemas/stored/credentials.ts'
import { isTimeUp } from '../time-limits.ts'
import type { Transport } from './client.ts'

type Asked = Parameters<Transport>[0]
type Options = Parameters<Transport>[1]
type Connection = Client['connectionPool']['connections'][number]
/** Called with the node that gets the read: the errors of the client do not name it. */
type OnChosen = (connection: Connection | null) => void

/**
 * The nodes, and which ones are left out. A node that is left out gets a `HEAD /` after 60 s. It is asked again unless
 * it is silent or answers 502, 503 or 504. By default the time would grow with each failure, up to half an hour. If all
 * nodes are left out, all are asked.
 */
export class Nodes extends ClusterConnectionPool {
  override resurrectTimeoutCutoff = 0

  override getConnection(options: GetConnectionOptions): Connection | null {
    const connection = super.getConnection(options)
    const { onChosen } = (options.context ?? {}) as { readonly onChosen?: OnChosen }
    onChosen?.(connection)
    return connection
  }
}

export const createTransport = (
  { transport, connectionPool }: Client,
  credentials: Credentials = noCredentials,
  elapsed: () => number = () => performance.now(),
): Transport => {
  const answeredAt = new WeakMap<Connection, number>()

  /** A slow read alone does not make a node silent: it answers others meanwhile. */
  const isSilentSince = (connection: Connection, begun: number) => (answeredAt.get(connection) ?? 0) < begun

  const send = async (request: Asked, options: Options, header: ReturnType<Credentials['header']>) => {
    const headers = { ...options.headers, ...header }
    // `traceparent`, if an OpenTelemetry SDK is loaded.
    propagation.inject(context.active(), headers)
    const begun = elapsed()
    let asked: Connection | null = null
    const onChosen: OnChosen = connection => {
      asked = connection
    }
    try {
      const answer = await transport.request<Readable>(request, { ...options, headers, context: { onChosen } })
      const { connection } = answer.meta
      if (connection) {
        answeredAt.set(connection, elapsed())
        // For streams the client's pool does not: a failed node would stay left out.
        connectionPool.markAlive(connection)
      }
      return answer
    } catch (error) {
      if (asked && isTimeUp(options.signal) && isSilentSince(asked, begun)) connectionPool.markDead(asked)
      throw error
    }
  }

  const sendAuthorized = async (request: Asked, options: Options) => {
    const header = credentials.header()
    const answer = await send(request, options, header)
    if (answer.statusCode !== 401 || !credentials.renew(header)) return answer
    drop(answer.body)
    return send(request, options, credentials.header())
  }

  return async (request, options) => {
    const unable = new Set<Connection>()
    const takeBack = () => unable.forEach(connection => void connectionPool.markAlive(connection))
    for (let others = options.maxRetries; ; others--) {
      const answer = await sendAuthorized(request, options).catch((error: unknown) => {
        takeBack()
        throw error
      })
      if (!isUnable(answer.statusCode)) return answer
      const { connection } = answer.meta
      if (connection) {
        unable.add(connection)
        connectionPool.markDead(connection)
      }
      if (others === 0) {
        takeBack()
        return answer
      }
      drop(answer.body)
    }
  }
}

/** A node without a master answers so, and at once. */
const isUnable = (status: number | null): boolean => status === 502 || status === 503 || status === 504

/** Reads an answer to its end, so that the connection can be used again. */
const drop = (body: Readable): void => void body.on('error', () => undefined).resume()
