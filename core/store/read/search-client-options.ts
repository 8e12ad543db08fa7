/** The options of the official Elasticsearch client. */
import type { ClientOptions } from '@elastic/elasticsearch'
import type { authOf } from '../elasticsearch-credentials.ts'
import { READ_TIME_MAX } from '../limits.ts'
import { Nodes } from './transport.ts'

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
