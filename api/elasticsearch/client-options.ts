/** How the Elasticsearch client is built from the settings. */
import type { ClientOptions } from '@elastic/elasticsearch'
import { READ_TIME_MAX } from '../limits.ts'

/** @param ca the contents of ELASTICSEARCH_CA_FILE */
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
  // Reads are told to the transport one by one; none of this is wanted behind their back.
  sniffOnStart: false,
  sniffInterval: false,
  sniffOnConnectionFault: false,
  enableMetaHeader: false,
  compression: false,
  redaction: { type: 'remove' },
})
