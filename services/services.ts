/**
 * Real Kafka and Elasticsearch for development, tests and benchmarks, from the first of these that there is:
 *   1. addresses in the environment: KAFKA_BROKERS and ELASTICSEARCH_URL. Nothing is started;
 *   2. a Docker engine that answers: containers;
 *   3. a JDK, and Maven when it is the first time: plain Java processes, assembled from Maven packages.
 * COMMISSION_SERVICES=docker or =jvm leaves only that one. Servers that are started end when this process does, however it ends.
 */
import { join } from 'node:path'
import { assemble, findAssembly } from './assembly.ts'
import { type Docker, findDocker, startElasticsearchContainer, startKafkaContainer } from './docker.ts'
import { startElasticsearch } from './elasticsearch.ts'
import { findJdk, findOnPath, type JdkSearch, oldestJava } from './jvm.ts'
import { type JavaHome, startKafka } from './kafka.ts'
import type { Environment, Progress, Say, Service, ServiceOptions } from './service.ts'

export type StartOptions = {
  readonly say: Say
  readonly environment: Environment
  /** Told how far the assembly is, which takes a minute the first time. */
  readonly progress?: Progress
  readonly kafka?: ServiceOptions
  readonly elasticsearch?: ServiceOptions
}

/** Where both are, and the handles on them where they were started here. */
export type Services = {
  /** As KAFKA_BROKERS: `host:port`, or several separated by commas. */
  readonly kafkaBrokers: string
  /** As ELASTICSEARCH_URL. */
  readonly elasticsearchUrl: string
  readonly from: 'environment' | 'docker' | 'jvm'
  readonly kafka: Service | undefined
  readonly elasticsearch: Service | undefined
  /** Ends what was started and deletes its data. */
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** Finds or starts both and waits until they serve. Throws one message when it cannot, and leaves nothing half-started. */
export const startServices = async (options: StartOptions): Promise<Services> => {
  const { environment, say } = options
  const given = givenAddresses(environment)
  if (given !== undefined) {
    say(`using Kafka at ${given.kafkaBrokers} and Elasticsearch at ${given.elasticsearchUrl}, as the environment says`)
    const stop = async () => {}
    return {
      ...given,
      from: 'environment',
      kafka: undefined,
      elasticsearch: undefined,
      stop,
      [Symbol.asyncDispose]: stop,
    }
  }
  const wanted = wantedWay(environment)
  const docker = wanted === 'jvm' ? undefined : await findDocker()
  if (docker !== undefined) return startInDocker(docker, options)

  const java = wanted === 'docker' ? undefined : await findJava(environment)
  if (java === undefined || 'missing' in java) throw new Error(nothingToStartWith(wanted, java?.missing))
  return startAsJava(java, options)
}

const givenAddresses = ({ KAFKA_BROKERS: kafkaBrokers, ELASTICSEARCH_URL: elasticsearchUrl }: Environment) => {
  if (!kafkaBrokers && !elasticsearchUrl) return undefined
  if (kafkaBrokers && elasticsearchUrl) return { kafkaBrokers, elasticsearchUrl }
  const [set, unset] = kafkaBrokers ? ['KAFKA_BROKERS', 'ELASTICSEARCH_URL'] : ['ELASTICSEARCH_URL', 'KAFKA_BROKERS']
  throw new Error(
    `${set} is set but ${unset} is not: set both to use servers of your own, or neither to have both started`,
  )
}

const wantedWay = ({ COMMISSION_SERVICES: way }: Environment): 'docker' | 'jvm' | undefined => {
  if (!way) return undefined
  if (way === 'docker' || way === 'jvm') return way
  throw new Error(`COMMISSION_SERVICES: expected docker or jvm, got ${JSON.stringify(way)}`)
}

type Java = { readonly jdkHome: string; readonly version: number; readonly maven: string | undefined }

const findJava = async (environment: Environment): Promise<Java | { missing: string[] }> => {
  const search = await findJdk(environment)
  const maven = await findOnPath('mvn', environment)
  const mavenIsMissing = maven === undefined && (await findAssembly()) === undefined
  const missing = [
    ...(search.jdk === undefined ? [missingJdk(search)] : []),
    ...(mavenIsMissing ? ['Maven: no mvn on the PATH'] : []),
  ]
  if (search.jdk === undefined || mavenIsMissing) return { missing }
  return { jdkHome: search.jdk.home, version: search.jdk.version, maven }
}

const missingJdk = ({ lookedAt, tooOld }: JdkSearch): string => {
  const found = tooOld.map(({ home, version }) => `Java ${version} in ${home}`).join(', ') || 'none'
  return `JDK: looked at ${lookedAt.join(', ')}; found ${found}`
}

const nothingToStartWith = (wanted: 'docker' | 'jvm' | undefined, missing: readonly string[] = []): string =>
  [
    `Kafka and Elasticsearch cannot be started here${wanted === undefined ? '' : ` with COMMISSION_SERVICES=${wanted}`}. Any of these would do:`,
    '- servers of your own: KAFKA_BROKERS and ELASTICSEARCH_URL in the environment; neither is set',
    wanted === 'jvm'
      ? '- Docker: not looked for'
      : '- Docker: no engine answers, neither where DOCKER_HOST says nor at its usual sockets',
    `- a JDK of ${oldestJava} or newer, and Maven${wanted === 'docker' ? ': not looked for' : ''}`,
    ...missing.map(line => `    ${line}`),
  ].join('\n')

const startInDocker = async (docker: Docker, options: StartOptions): Promise<Services> => {
  options.say('Docker answers: starting Kafka and Elasticsearch as containers (images are pulled the first time)')
  return startBoth('docker', options.say, {
    kafka: () => startKafkaContainer(docker, options.kafka),
    elasticsearch: () => startElasticsearchContainer(docker, options.elasticsearch),
  })
}

const startAsJava = async (java: Java, options: StartOptions): Promise<Services> => {
  const { environment, say } = options
  say(`starting Kafka and Elasticsearch with Java ${java.version} (${java.jdkHome})`)
  const assembly = (await findAssembly()) ?? (await assembleFirst(java, options))
  const home: JavaHome = { java: join(java.jdkHome, 'bin', 'java'), assembly, environment }
  return startBoth('jvm', say, {
    kafka: () => startKafka(home, options.kafka),
    elasticsearch: () => startElasticsearch(home, options.elasticsearch),
  })
}

const assembleFirst = async ({ jdkHome, maven }: Java, options: StartOptions): Promise<string> => {
  if (maven === undefined) throw new Error('Maven: no mvn on the PATH')
  const { environment, say, progress = () => {} } = options
  say('assembling both from Maven packages: once, up to a minute when Maven has none of them')
  const folder = await assemble({ jdkHome, maven, environment, progress })
  say('assembled')
  return folder
}

type Starters = { readonly kafka: () => Promise<Service>; readonly elasticsearch: () => Promise<Service> }

/** Starts both at once. When one fails the other is ended too. */
const startBoth = async (from: 'docker' | 'jvm', say: Say, starters: Starters): Promise<Services> => {
  await using started = new AsyncDisposableStack()
  const timed = async (start: () => Promise<Service>): Promise<Service> => {
    const began = performance.now()
    const service = started.use(await start())
    say(`${service.name} serves at ${service.address} after ${((performance.now() - began) / 1000).toFixed(1)} s`)
    return service
  }
  const both = [timed(starters.kafka), timed(starters.elasticsearch)] as const
  // Wait for the slower one also when the other has failed: only what has started can be ended.
  await Promise.allSettled(both)
  const [kafka, elasticsearch] = await Promise.all(both)

  const kept = started.move()
  const stop = () => kept.disposeAsync()
  return {
    kafkaBrokers: kafka.address,
    elasticsearchUrl: elasticsearch.address,
    from,
    kafka,
    elasticsearch,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
