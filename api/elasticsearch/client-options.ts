/** The options of the official Elasticsearch client, and how this API sends requests through it. */
import type { Readable } from 'node:stream'
import type { Client, ClientOptions } from '@elastic/elasticsearch'
import { READ_TIME_MAX } from '../limits.ts'
import type { Transport } from './client.ts'

/** Returns the options for these settings. @param ca the contents of ELASTICSEARCH_CA_FILE */
export const clientOptions = (
  nodes: readonly string[],
  apiKey: string | undefined,
  ca: string | undefined,
): ClientOptions => ({
  nodes: [...nodes],
  ...(apiKey === undefined ? {} : { auth: { apiKey } }),
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

/** Marks a node that answered as alive. For streams the client's pool does not: a failed node would stay dead. */
export const createTransport =
  ({ transport, connectionPool }: Client): Transport =>
  async (request, options) => {
    const answer = await transport.request<Readable>(request, options)
    if (answer.meta.connection) connectionPool.markAlive(answer.meta.connection)
    return answer
  }
