/** The installation that the members of a consumer group name: an index prefix in an Elasticsearch cluster. */
import type { InstallationIdentity } from '../log/index.ts'
import { StopError } from '../runtime/index.ts'
import type { Elasticsearch } from './elasticsearch/client.ts'

export const installationOf = async (
  prefix: string,
  { send }: Pick<Elasticsearch, 'send'>,
): Promise<InstallationIdentity> => {
  try {
    const request = { method: 'GET', path: '/', query: { filter_path: 'cluster_uuid' } } as const
    const { body } = await send<{ readonly cluster_uuid?: unknown } | undefined>(request)
    const elasticsearch = body?.cluster_uuid
    return { prefix, elasticsearch: typeof elasticsearch === 'string' ? elasticsearch : null }
  } catch (error) {
    // Without the permission to read the UUID, the prefix tells most installations apart.
    if (error instanceof StopError) return { prefix, elasticsearch: null }
    throw error
  }
}
