/**
 * Real Kafka and Elasticsearch for development, tests and benchmarks: found or started (see locate.ts). Started servers
 * end with this process, however it ends, and leave nothing behind.
 */
import { join } from 'node:path'
import { assemble, findAssembly } from './assembly.ts'
import { type ClusterOptions, type KafkaCluster, startKafkaCluster } from './cluster/cluster.ts'
import { startElasticsearchContainer, startKafkaContainer } from './docker.ts'
import { startElasticsearch } from './elasticsearch.ts'
import type { JavaHome } from './java-process.ts'
import { startKafka } from './kafka.ts'
import { findServiceSource, type ServiceSource } from './locate.ts'
import type { Environment, ReportProgress, Say, Service, ServiceOptions } from './service.ts'

/** Finds or starts both, and waits until they serve. @throws Error if one fails; the other one is then removed */
export const startServices = async (options: StartOptions): Promise<Services> => {
  const { cluster, environment, say } = options
  const source = await findServiceSource(cluster === undefined ? environment : onJava(environment))
  if (source.from === 'environment') return useGiven(source, say)
  const starters = await startersOf(source, options)
  if (cluster === undefined) return { ...(await startBoth(source.from, starters, say)), kafkaSettings: {} }
  const kafka = await clusterStarter(cluster, options)
  const started = await startBoth(source.from, { ...starters, kafka }, say)
  return { ...started, kafkaSettings: started.kafka.settings }
}

/** Starts one of both, and waits until it serves. Ignores addresses in the environment: they are of other servers. */
export const startOnly = (which: keyof Starters, options: StartOptions): Promise<Service | KafkaCluster> => {
  const environment = { ...options.environment, KAFKA_BROKERS: undefined, ELASTICSEARCH_URL: undefined }
  const alone = { ...options, environment }
  return options.cluster === undefined ? startServer(which, alone) : startCluster(options.cluster, alone)
}

/** Starts several Kafka nodes without Elasticsearch, and waits until all serve. */
export const startCluster = async (cluster: ClusterOptions, options: StartOptions): Promise<KafkaCluster> =>
  (await clusterStarter(cluster, options))()

const clusterStarter = async (cluster: ClusterOptions, options: StartOptions): Promise<() => Promise<KafkaCluster>> => {
  const source = await findServiceSource(onJava(options.environment))
  if (source.from !== 'jvm') throw new Error('several or secured brokers run as Java processes: no server is started')
  const home = await javaHome(source, options)
  return () => startKafkaCluster(home, cluster, options.kafka)
}

/** @throws Error if the environment gives addresses or asks for Docker */
const onJava = (environment: Environment): Environment => {
  for (const name of ['KAFKA_BROKERS', 'ELASTICSEARCH_URL']) {
    if (environment[name]) throw new Error(`${name} is set: unset it to start several or secured brokers`)
  }
  if (environment.COMMISSION_SERVICES === 'docker')
    throw new Error('several or secured brokers run as Java processes: COMMISSION_SERVICES=docker excludes them')
  return { ...environment, COMMISSION_SERVICES: 'jvm' }
}

/** Starts one of them alone, and waits until it serves. @throws Error if the environment gives addresses */
export const startServer = async (which: keyof Starters, options: StartOptions): Promise<Service> => {
  const source = await findServiceSource(options.environment)
  if (source.from === 'environment')
    throw new Error('KAFKA_BROKERS and ELASTICSEARCH_URL are set: no server is started')
  return (await startersOf(source, options))[which]()
}

export type StartOptions = {
  readonly say: Say
  readonly environment: Environment
  /** Reports the progress of the assembly, which takes up to a minute the first time. */
  readonly progress?: ReportProgress
  readonly kafka?: ServiceOptions
  readonly elasticsearch?: ServiceOptions
  /** Several or secured brokers instead of one plain broker. Java processes only. */
  readonly cluster?: ClusterOptions
}

/** The addresses of both, and handles on those that were started here. */
export type Services = {
  /** As KAFKA_BROKERS: `host:port`, or several separated by commas. */
  readonly kafkaBrokers: string
  /** The settings that Kafka clients need beside the addresses: none without security. */
  readonly kafkaSettings: Readonly<Record<string, string>>
  /** As ELASTICSEARCH_URL. */
  readonly elasticsearchUrl: string
  readonly from: ServiceSource['from']
  readonly kafka: Service | undefined
  readonly elasticsearch: Service | undefined
  /** Stops the started servers and deletes their data. */
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

type SourceFrom<From extends ServiceSource['from']> = Extract<ServiceSource, { from: From }>
type Starters<Kafka extends Service = Service> = {
  readonly kafka: () => Promise<Kafka>
  readonly elasticsearch: () => Promise<Service>
}

const startersOf = async (source: SourceFrom<'docker' | 'jvm'>, options: StartOptions): Promise<Starters> =>
  source.from === 'docker' ? dockerStarters(source, options) : javaStarters(source, options)

const useGiven = ({ from, kafkaBrokers, elasticsearchUrl }: SourceFrom<'environment'>, say: Say): Services => {
  say(`using Kafka at ${kafkaBrokers} and Elasticsearch at ${elasticsearchUrl} (from the environment)`)
  const stop = async () => {}
  const handles = { kafka: undefined, elasticsearch: undefined }
  return { kafkaBrokers, kafkaSettings: {}, elasticsearchUrl, from, ...handles, stop, [Symbol.asyncDispose]: stop }
}

const dockerStarters = ({ docker }: SourceFrom<'docker'>, { say, kafka, elasticsearch }: StartOptions): Starters => {
  say('starting Kafka and Elasticsearch in Docker; the images are pulled the first time')
  return {
    kafka: () => startKafkaContainer(docker, kafka),
    elasticsearch: () => startElasticsearchContainer(docker, elasticsearch),
  }
}

const javaStarters = async (source: SourceFrom<'jvm'>, options: StartOptions): Promise<Starters> => {
  const { say, kafka, elasticsearch } = options
  const home = await javaHome(source, options)
  say(`starting Kafka and Elasticsearch on Java ${source.jdk.version} (${source.jdk.home})`)
  return {
    kafka: () => startKafka(home, kafka),
    elasticsearch: () => startElasticsearch(home, elasticsearch),
  }
}

const javaHome = async (source: SourceFrom<'jvm'>, options: StartOptions): Promise<JavaHome> => {
  const assembly = (await findAssembly()) ?? (await assembleOnce(source, options))
  return { java: join(source.jdk.home, 'bin', 'java'), assembly, environment: options.environment }
}

/** Concurrent starts share one assembly. */
const assembleOnce = (source: SourceFrom<'jvm'>, options: StartOptions): Promise<string> => {
  assembling ??= assembleFirst(source, options).finally(() => {
    assembling = undefined
  })
  return assembling
}
let assembling: Promise<string> | undefined

const assembleFirst = async ({ jdk, maven }: SourceFrom<'jvm'>, options: StartOptions): Promise<string> => {
  if (maven === undefined)
    throw new Error('the assembled Kafka and Elasticsearch are gone, and there is no mvn on the PATH')
  const { environment, say, progress = () => {} } = options
  say('assembling Kafka and Elasticsearch from Maven packages: only the first time, up to a minute')
  return assemble({ jdkHome: jdk.home, maven, environment, progress })
}

/** Starts both at once. If one fails, the other one is ended. */
const startBoth = async <Kafka extends Service>(from: ServiceSource['from'], starters: Starters<Kafka>, say: Say) => {
  await using started = new AsyncDisposableStack()
  const timed = async <Started extends Service>(start: () => Promise<Started>): Promise<Started> => {
    const began = performance.now()
    const service = started.use(await start())
    say(`${service.name} serves at ${service.address} after ${((performance.now() - began) / 1000).toFixed(1)} s`)
    return service
  }
  const both = [timed(starters.kafka), timed(starters.elasticsearch)] as const
  // Wait for both even if one fails: the other can be ended only after its start.
  await Promise.allSettled(both)
  const [kafka, elasticsearch] = await Promise.all(both)

  const kept = started.move()
  const stop = () => kept.disposeAsync()
  const addresses = { kafkaBrokers: kafka.address, elasticsearchUrl: elasticsearch.address }
  return { ...addresses, from, kafka, elasticsearch, stop, [Symbol.asyncDispose]: stop }
}
