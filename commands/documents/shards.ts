/** Whether all shards took part in an answer of Elasticsearch. */
import type { Answer } from '../../projector/elasticsearch/client.ts'

type Covered = { readonly _shards?: { readonly failed: number }; readonly timed_out?: boolean }

/** Of a search, a count or a refresh. In an incomplete answer documents are missing, or counts are too low. */
export const isComplete = ({ status, body }: Answer): boolean => {
  const { _shards, timed_out } = body as Covered
  return status === 200 && _shards?.failed === 0 && timed_out !== true
}

export const hasFailedShards = ({ body }: Answer): boolean => ((body as Covered)._shards?.failed ?? 0) > 0
