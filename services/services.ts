/**
 * Real Kafka and Elasticsearch for development, tests and benchmarks: found or started (see locate.ts). Started servers
 * end with this process, however it ends, and leave nothing behind.
 */
import { join } from 'node:path'
import { assemble, findAssembly } from './assembly.ts'
import { startElasticsearchContainer, startKafkaContainer } from './docker.ts'
import { startElasticsearch } from './elasticsearch.ts'
import { startKafka } from './kafka.ts'
import { findServiceSource, type ServiceSource } from './locate.ts'
import type { Environment, ReportProgress, Say, Service, ServiceOptions } from './service.ts'

/** Finds or starts both, and waits until they serve. @throws Error if one fails; the other one is then removed */
export const startServices = async (options: StartOptions): Promise<Services> => {
  const source = await findServiceSource(options.environment)
  if (source.from === 'environment') return useGiven(source, options.say)
  return startBoth(source.from, await startersOf(source, options), options.say)
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
}

/** The addresses of both, and handles on those that were started here. */
export type Services = {
  /** As KAFKA_BROKERS: `host:port`, or several separated by commas. */
  readonly kafkaBrokers: string
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
type Starters = { readonly kafka: () => Promise<Service>; readonly elasticsearch: () => Promise<Service> }

const startersOf = async (source: SourceFrom<'docker' | 'jvm'>, options: StartOptions): Promise<Starters> =>
  source.from === 'docker' ? dockerStarters(source, options) : javaStarters(source, options)

const useGiven = ({ from, kafkaBrokers, elasticsearchUrl }: SourceFrom<'environment'>, say: Say): Services => {
  say(`using Kafka at ${kafkaBrokers} and Elasticsearch at ${elasticsearchUrl} (from the environment)`)
  const stop = async () => {}
  const handles = { kafka: undefined, elasticsearch: undefined }
  return { kafkaBrokers, elasticsearchUrl, from, ...handles, stop, [Symbol.asyncDispose]: stop }
}

const dockerStarters = ({ docker }: SourceFrom<'docker'>, { say, kafka, elasticsearch }: StartOptions): Starters => {
  say('starting Kafka and Elasticsearch in Docker; the images are pulled the first time')
  return {
    kafka: () => startKafkaContainer(docker, kafka),
    elasticsearch: () => startElasticsearchContainer(docker, elasticsearch),
  }
}

const javaStarters = async (source: SourceFrom<'jvm'>, options: StartOptions): Promise<Starters> => {
  const { environment, say, kafka, elasticsearch } = options
  const assembly = (await findAssembly()) ?? (await assembleOnce(source, options))
  say(`starting Kafka and Elasticsearch on Java ${source.jdk.version} (${source.jdk.home})`)
  const home = { java: join(source.jdk.home, 'bin', 'java'), assembly, environment }
  return {
    kafka: () => startKafka(home, kafka),
    elasticsearch: () => startElasticsearch(home, elasticsearch),
  }
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
const startBoth = async (from: ServiceSource['from'], starters: Starters, say: Say): Promise<Services> => {
  await using started = new AsyncDisposableStack()
  const timed = async (start: () => Promise<Service>): Promise<Service> => {
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
