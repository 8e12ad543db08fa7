/** Three nodes of Elasticsearch on this machine. All may be master and hold data. */
import { freePort } from '../ports.ts'
import type { Service } from '../service.ts'

export const nodeNames = ['one', 'two', 'three'] as const
export type NodeName = (typeof nodeNames)[number]

/**
 * @param start starts a node with these settings. The caller removes it, also after a failure
 * @returns the nodes in the order of their names; the first one is the master at the beginning
 */
export const startThreeNodes = async (
  start: (name: NodeName, settings: Readonly<Record<string, string>>) => Promise<Service>,
): Promise<Service[]> => {
  const ports = new Map<string, string>()
  for (const name of nodeNames) ports.set(name, String(await freePort()))
  const cluster = {
    'discovery.type': 'multi-node',
    'discovery.seed_hosts': [...ports.values()].map(port => `127.0.0.1:${port}`).join(),
    // As in docs/scale.md: a node without a master must not answer from its old data.
    'cluster.no_master_block': 'all',
    // A node that restarts gets replicas, and keeps only replicas.
    'cluster.routing.rebalance.enable': 'none',
    // Shards are small here: many recoveries at the same time are faster than two.
    'cluster.routing.allocation.node_concurrent_recoveries': '8',
  }
  const startNode = (name: NodeName, more: Readonly<Record<string, string>> = {}): Promise<Service> =>
    start(name, {
      ...cluster,
      'node.name': name,
      'node.roles': 'master,data',
      'transport.port': ports.get(name) ?? '',
      ...more,
    })
  // The first node forms the cluster. The others join it.
  const [master, ...others] = nodeNames
  const first = await startNode(master, { 'cluster.initial_master_nodes': master })
  const joining = others.map(name => startNode(name))
  // Wait for all even if one fails: the others can be ended only after their start.
  await Promise.allSettled(joining)
  return [first, ...(await Promise.all(joining))]
}
