/** Whether all shards took part in an answer of Elasticsearch. */
import type { Answer, Coverage } from '../../core/store/index.ts'

/** Of a search, a count or a refresh. In an incomplete answer documents are missing, or counts are too low. */
export const isComplete = ({ status, body: { _shards, timed_out } }: Answer<Coverage>): boolean =>
  status === 200 && _shards?.failed === 0 && timed_out !== true

export const hasFailedShards = ({ body }: Answer<Coverage>): boolean => (body._shards?.failed ?? 0) > 0
