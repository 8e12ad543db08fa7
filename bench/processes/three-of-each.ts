/** Three Kafka brokers and three nodes of Elasticsearch, beside the servers of the bench, for the same measurements. */
import { joinNodes } from '../../services/cluster/join-nodes.ts'
import { startThreeNodes } from '../../services/cluster/three-nodes.ts'
import { startCluster, startServer } from '../../services/services.ts'
import type { Bench } from '../rig/bench.ts'
import { createBenchElasticsearch } from '../rig/elasticsearch.ts'

/**
 * Starts them with the heaps of the bench's own servers, as Java processes. They are removed with the stack.
 * @returns the bench with these servers; its signal is also aborted if one of them ends
 */
export const startThreeOfEach = async (bench: Bench, stack: AsyncDisposableStack): Promise<Bench> => {
  const options = { say: () => undefined, environment: process.env }
  const startBrokers = async () => stack.use(await startCluster({ brokers: 3, secure: undefined }, options))
  const began = performance.now()
  const starting = [
    startBrokers(),
    startThreeNodes(async (_, settings) =>
      stack.use(await startServer('elasticsearch', { ...options, elasticsearch: { settings } })),
    ),
  ] as const
  // Wait for both even if one fails: the other can be ended only after its start.
  await Promise.allSettled(starting)
  const [kafka, nodes] = await Promise.all(starting)
  bench.signal.throwIfAborted()
  bench.say(`three brokers and three nodes serve after ${((performance.now() - began) / 1000).toFixed(1)} s`)

  const elasticsearch = joinNodes('elasticsearch', nodes)
  const ended = new AbortController()
  for (const { died } of [kafka, elasticsearch]) void died.then(error => ended.abort(error))
  return {
    ...bench,
    services: {
      ...bench.services,
      kafkaBrokers: kafka.address,
      elasticsearchUrl: elasticsearch.address,
      kafka,
      elasticsearch,
    },
    elasticsearch: createBenchElasticsearch(elasticsearch.address),
    signal: AbortSignal.any([bench.signal, ended.signal]),
  }
}
