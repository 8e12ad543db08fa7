/** Three nodes of Elasticsearch. All may be master and hold data. */
import { freePort } from '../../services/ports.ts'
import type { Service } from '../../services/service.ts'
import { startOwnServer } from './own-services.ts'
import type { Scope } from './scope.ts'

const NAMES = ['one', 'two', 'three'] as const
type Name = (typeof NAMES)[number]
export type ElasticsearchNode = { readonly name: Name; readonly service: Service }

/** `settings`: those of single nodes. The first node is the master at the beginning. */
export const startElasticsearchNodes = async (
  scope: Scope,
  settings: Partial<Record<Name, Record<string, string>>> = {},
): Promise<ElasticsearchNode[]> => {
  const ports = new Map<string, string>()
  for (const name of NAMES) ports.set(name, String(await freePort()))
  const cluster = {
    'discovery.type': 'multi-node',
    'discovery.seed_hosts': [...ports.values()].map(port => `127.0.0.1:${port}`).join(),
    // As in docs/generations.md: a node without a master must not answer from its old data.
    'cluster.no_master_block': 'all',
    // A node that restarts gets replicas, and keeps only replicas.
    'cluster.routing.rebalance.enable': 'none',
    // Shards are small here: many recoveries at the same time are faster than two.
    'cluster.routing.allocation.node_concurrent_recoveries': '8',
  }
  const start = async (name: Name, first: Record<string, string> = {}): Promise<ElasticsearchNode> => {
    const own = { 'node.name': name, 'node.roles': 'master,data', 'transport.port': ports.get(name) ?? '' }
    const service = await startOwnServer(scope, 'elasticsearch', {
      settings: { ...cluster, ...own, ...first, ...settings[name] },
    })
    return { name, service }
  }
  // The first node forms the cluster. The others join it.
  const first = await start('one', { 'cluster.initial_master_nodes': 'one' })
  return [first, ...(await Promise.all([start('two'), start('three')]))]
}
