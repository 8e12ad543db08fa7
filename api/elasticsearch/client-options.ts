/** The options of the official Elasticsearch client, and how this API sends requests through it. */
import type { Readable } from 'node:stream'
import type { Client, ClientOptions } from '@elastic/elasticsearch'
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
  // Each read sets its own transport options. The client must send nothing else.
  sniffOnStart: false,
  sniffInterval: false,
  sniffOnConnectionFault: false,
  enableMetaHeader: false,
  compression: false,
  redaction: { type: 'remove' },
})

/**
 * Marks a node that answered as alive. For streams the client's pool does not: a failed node would stay dead. A request
 * whose credentials are refused is repeated once if their file has others by now.
 */
export const createTransport =
  ({ transport, connectionPool }: Client, credentials: Credentials = noCredentials): Transport =>
  async (request, options) => {
    const send = async (header: ReturnType<Credentials['header']>) => {
      const headers = { ...options.headers, ...header }
      // `traceparent`, if an OpenTelemetry SDK is loaded.
      propagation.inject(context.active(), headers)
      const answer = await transport.request<Readable>(request, { ...options, headers })
      if (answer.meta.connection) connectionPool.markAlive(answer.meta.connection)
      return answer
    }
    const header = credentials.header()
    const answer = await send(header)
    if (answer.statusCode !== 401 || !credentials.renew(header)) return answer
    // Read to the end and dropped, so that the connection can be reused.
    answer.body.on('error', () => undefined).resume()
    return send(credentials.header())
  }
