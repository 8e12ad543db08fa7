/** One Elasticsearch node for development and tests: its settings, and its start as a Java process. */
import { join } from 'node:path'
import { sources } from './assembly.ts'
import { type JavaHome, startJavaProcess } from './java-process.ts'
import { freePort } from './ports.ts'
import type { Service, ServiceOptions } from './service.ts'

/** The version in jvm/elasticsearch/pom.xml and of the Docker image. */
export const elasticsearchVersion = '9.5.3'
export const elasticsearchHeap = '1g'

/** Settings for Docker and Java. No xpack ones: the node made of packages has no x-pack and stops at them. */
export const elasticsearchServerSettings = {
  'cluster.name': 'commission',
  'node.name': 'node',
  'discovery.type': 'single-node',
  // On a nearly full disk, Elasticsearch would refuse to allocate shards, and then to write.
  'cluster.routing.allocation.disk.threshold_enabled': 'false',
} as const

/** Polled until it answers 200 (yellow: one node holds no replicas) or 408: a broken index must not block the start. */
export const elasticsearchHealth = '/_cluster/health?wait_for_status=yellow&timeout=20s'

/** Runs Elasticsearch on free ports of 127.0.0.1, and waits until it serves. */
export const startElasticsearch = async (home: JavaHome, options: ServiceOptions = {}): Promise<Service> => {
  const { heap = elasticsearchHeap, javaOptions = [], settings } = options
  const port = await freePort()
  const transport = await freePort()
  const address = `http://127.0.0.1:${port}`
  const elasticsearch = join(home.assembly, 'elasticsearch')

  return startJavaProcess({
    name: 'elasticsearch',
    address,
    home,
    serves: () => serves(address),
    commandLine: async folder => {
      const network = { 'network.host': '127.0.0.1', 'http.port': String(port), 'transport.port': String(transport) }
      const paths = { 'path.data': join(folder, 'data'), 'path.logs': join(folder, 'logs') }
      const all = { ...elasticsearchServerSettings, ...network, ...paths, ...settings }
      return [
        ...[`-Xms${heap}`, `-Xmx${heap}`, ...collectorOptions, '-XX:+ExitOnOutOfMemoryError', '-XX:-UsePerfData'],
        ...nodeOptions,
        ...javaOptions,
        `-Des.path.home=${elasticsearch}`,
        ...['--module-path', join(elasticsearch, 'lib'), '-cp', join(elasticsearch, 'classes')],
        ...['ElasticsearchNode', folder, elasticsearch, join(sources, 'elasticsearch', 'config')],
        ...Object.entries(all).map(([name, value]) => `${name}=${value}`),
      ]
    },
  })
}

/**
 * Those of Elasticsearch's own launcher for a heap below 8 GB. With Java's defaults, documents of 512 KB and more take
 * a heap of 1 GB to the limit at which Elasticsearch refuses requests with 429.
 */
const collectorOptions = [
  '-XX:+UseG1GC',
  ...['-XX:G1HeapRegionSize=4m', '-XX:InitiatingHeapOccupancyPercent=30', '-XX:G1ReservePercent=15'],
]

const nodeOptions = [
  '--add-modules=ALL-MODULE-PATH',
  '--enable-native-access=org.elasticsearch.nativeaccess,org.apache.lucene.core',
  // Java 21 and 22 do not know the second option, and would not start without the first.
  ...['-XX:+IgnoreUnrecognizedVMOptions', '--sun-misc-unsafe-memory-access=allow'],
  ...['-Dfile.encoding=UTF-8', '-Djava.awt.headless=true'],
  // The node closes its loggers itself, as its last step.
  ...['-Dlog4j2.disable.jmx=true', '-Dlog4j.shutdownHookEnabled=false'],
  ...['-Dio.netty.noUnsafe=true', '-Dio.netty.noKeySetOptimization=true', '-Dio.netty.recycler.maxCapacityPerThread=0'],
]

const serves = async (address: string): Promise<boolean> => {
  try {
    const answer = await fetch(`${address}${elasticsearchHealth}`, { signal: AbortSignal.timeout(25_000) })
    await answer.body?.cancel()
    return answer.ok || answer.status === 408
  } catch {
    return false
  }
}
