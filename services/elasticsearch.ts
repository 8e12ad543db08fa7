/** One Elasticsearch node for development and tests: its settings, and how it is run as a Java process. */
import { join } from 'node:path'
import { sources } from './assembly.ts'
import { type JavaHome, startJavaProcess } from './java-process.ts'
import { freePort } from './ports.ts'
import type { Service, ServiceOptions } from './service.ts'

/** The version in jvm/elasticsearch/pom.xml and of the Docker image. */
export const elasticsearchVersion = '9.5.3'
export const elasticsearchHeap = '1g'

/**
 * Settings that hold wherever it runs. No xpack ones: the node made of packages has no x-pack and stops at an unknown
 * setting.
 */
export const elasticsearchSettings = {
  'cluster.name': 'commission',
  'node.name': 'node',
  'discovery.type': 'single-node',
  // On a disk that is nearly full it would refuse to allocate shards, and then to write.
  'cluster.routing.allocation.disk.threshold_enabled': 'false',
} as const

/**
 * Asked for until it is answered with 200. Yellow is as good as one node gets; a broken index must not hold the start
 * up.
 */
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
      const all = { ...elasticsearchSettings, ...network, ...paths, ...settings }
      return [
        ...[`-Xms${heap}`, `-Xmx${heap}`, '-XX:+UseG1GC', '-XX:+ExitOnOutOfMemoryError', '-XX:-UsePerfData'],
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

const nodeOptions = [
  '--add-modules=ALL-MODULE-PATH',
  '--enable-native-access=org.elasticsearch.nativeaccess,org.apache.lucene.core',
  // Java 21 and 22 do not know the second one, and would not start without the first.
  ...['-XX:+IgnoreUnrecognizedVMOptions', '--sun-misc-unsafe-memory-access=allow'],
  ...['-Dfile.encoding=UTF-8', '-Djava.awt.headless=true'],
  // The node closes its loggers itself, as the last thing.
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
