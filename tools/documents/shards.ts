/** Whether all shards took part in an answer of Elasticsearch. */
import type { Answer, Coverage } from '../../core/store/index.ts'

/**
 * Of a search. In an incomplete answer documents are missing, or counts are too low. Elasticsearch does not count a
 * shard that no node has as failed.
 */
export const isComplete = ({ status, body: { _shards, timed_out } }: Answer<Coverage>): boolean =>
  status === 200 && _shards?.failed === 0 && _shards.successful === _shards.total && timed_out !== true

/** Of a refresh. A missing replica does no harm, and a search tells of a shard without any copy. */
export const isRefreshed = ({ status, body: { _shards } }: Answer<Coverage>): boolean =>
  status === 200 && _shards?.failed === 0

export const hasFailedShards = ({ body }: Answer<Coverage>): boolean => (body._shards?.failed ?? 0) > 0
