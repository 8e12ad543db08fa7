/** Converts settings to options of the Elasticsearch client. Sets explicitly each default that could surprise. */
import type { ClientOptions } from '@elastic/elasticsearch'
import { type elasticsearchSettings, type Read, type ReadSettingFile, readSetting } from '../runtime/index.ts'
import { authOf } from './elasticsearch-credentials.ts'
import { ELASTICSEARCH_TIMEOUT_MS } from './limits.ts'

export const elasticsearchConfig = (
  settings: Read<typeof elasticsearchSettings>,
  readFile: ReadSettingFile,
): ClientOptions => {
  const auth = authOf(settings)
  return {
    nodes: settings.ELASTICSEARCH_URL,
    // `keepTrying` and `documents/documents.ts` retry: the client would retry silently, and treat a timeout as final.
    maxRetries: 0,
    requestTimeout: ELASTICSEARCH_TIMEOUT_MS,
    compression: false,
    sniffOnStart: false,
    ...(auth !== undefined && { auth }),
    ...(settings.ELASTICSEARCH_CA_FILE !== undefined && {
      tls: { ca: readSetting('ELASTICSEARCH_CA_FILE', settings.ELASTICSEARCH_CA_FILE, readFile) },
    }),
  }
}
