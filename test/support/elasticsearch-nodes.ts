/** Three nodes of Elasticsearch. All may be master and hold data. */
import { type NodeName, nodeNames, startThreeNodes } from '../../services/cluster/three-nodes.ts'
import type { Service } from '../../services/service.ts'
import { startOwnServer } from './own-services.ts'
import type { Scope } from './scope.ts'

export type ElasticsearchNode = { readonly name: NodeName; readonly service: Service }

/** `settings`: those of single nodes. The first node is the master at the beginning. */
export const startElasticsearchNodes = async (
  scope: Scope,
  settings: Partial<Record<NodeName, Record<string, string>>> = {},
): Promise<ElasticsearchNode[]> => {
  const services = await startThreeNodes((name, own) =>
    startOwnServer(scope, 'elasticsearch', { settings: { ...own, ...settings[name] } }),
  )
  return services.map((service, at) => ({ name: nodeNames[at] ?? 'one', service }))
}
