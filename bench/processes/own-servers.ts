/**
 * One or three Kafka brokers and nodes of Elasticsearch, beside the servers of the bench, for the same measurements.
 * Their JVMs compile fast and optimize less: of two installations that are compared within minutes, the larger one
 * would else be compared before its compilers have ended.
 */
import { joinNodes } from '../../services/cluster/join-nodes.ts'
import { startThreeNodes } from '../../services/cluster/three-nodes.ts'
import { type Service, shortLived } from '../../services/service.ts'
import { startCluster, startServer } from '../../services/services.ts'
import type { Bench } from '../rig/bench.ts'
import { createBenchElasticsearch } from '../rig/elasticsearch.ts'

/**
 * Starts them as Java processes. They are removed with the stack.
 * @returns the bench with these servers; its signal is also aborted if one of them ends
 */
export const startOwnServers = async (bench: Bench, count: 1 | 3, stack: AsyncDisposableStack): Promise<Bench> => {
  const options = { say: () => undefined, environment: process.env, kafka: shortLived, elasticsearch: shortLived }
  const startNode = async (settings: Readonly<Record<string, string>>): Promise<Service> =>
    stack.use(await startServer('elasticsearch', { ...options, elasticsearch: { ...shortLived, settings } }))
  const startBrokers = async (): Promise<Service> =>
    stack.use(await startCluster({ brokers: count, secure: undefined }, options))
  const starting = [
    startBrokers(),
    count === 1
      ? startNode({})
      : startThreeNodes((_, settings) => startNode(settings)).then(nodes => joinNodes('elasticsearch', nodes)),
  ] as const
  // Wait for both even if one fails: the other can be ended only after its start.
  await Promise.allSettled(starting)
  const [kafka, elasticsearch] = await Promise.all(starting)
  bench.signal.throwIfAborted()

  const ended = new AbortController()
  for (const { died } of [kafka, elasticsearch]) void died.then(error => ended.abort(error))
  const addresses = { kafkaBrokers: kafka.address, elasticsearchUrl: elasticsearch.address }
  return {
    ...bench,
    services: { ...bench.services, ...addresses, kafka, elasticsearch },
    elasticsearch: createBenchElasticsearch(elasticsearch.address),
    signal: AbortSignal.any([bench.signal, ended.signal]),
  }
}
