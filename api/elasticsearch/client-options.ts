/** Builds the options of the Elasticsearch client from the settings. */
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
  // Each read sets its own transport options. The client must send nothing else.
  sniffOnStart: false,
  sniffInterval: false,
  sniffOnConnectionFault: false,
  enableMetaHeader: false,
  compression: false,
  redaction: { type: 'remove' },
})
