/**
 * Chooses the source of Kafka and Elasticsearch, the first of these that is available:
 *   1. Addresses in the environment: KAFKA_BROKERS and ELASTICSEARCH_URL. Nothing is started.
 *   2. A Docker engine that answers: containers.
 *   3. A JDK, and Maven for the first time: Java processes, assembled from Maven packages.
 * COMMISSION_SERVICES=docker or =jvm excludes the other one of 2 and 3. If nothing is available, one message says what
 * was searched, where, and what was found.
 */
import { findAssembly } from './assembly.ts'
import { type Docker, findDocker } from './docker.ts'
import { findJdk, findOnPath, type Jdk, type JdkSearch, oldestJava } from './jvm.ts'
import type { Environment } from './service.ts'

export type ServiceSource =
  | { readonly from: 'environment'; readonly kafkaBrokers: string; readonly elasticsearchUrl: string }
  | { readonly from: 'docker'; readonly docker: Docker }
  /** Without Maven only if the assembly exists. */
  | { readonly from: 'jvm'; readonly jdk: Jdk; readonly maven: string | undefined }

/** Returns the first source that is available. @throws Error that describes the search if none is */
export const findServiceSource = async (environment: Environment): Promise<ServiceSource> => {
  const given = givenAddresses(environment)
  if (given !== undefined) return given

  const only = requestedSource(environment)
  const docker = only === 'jvm' ? undefined : await findDocker(environment)
  if (docker !== undefined) return { from: 'docker', docker }

  const java = only === 'docker' ? { missing: ['not looked for'] } : await findJava(environment)
  if (!('missing' in java)) return java

  throw new Error(
    [
      'found no way to run Kafka and Elasticsearch. One of these is needed:',
      '- running servers: KAFKA_BROKERS and ELASTICSEARCH_URL in the environment. Neither is set',
      `- Docker: ${only === 'jvm' ? 'not looked for' : describeDockerSearch(environment)}`,
      `- a JDK of ${oldestJava} or newer, and Maven: ${java.missing.join('; ')}`,
      ...(only === undefined ? [] : [`COMMISSION_SERVICES=${only} excludes the other one`]),
    ].join('\n'),
  )
}

const givenAddresses = ({ KAFKA_BROKERS: kafkaBrokers, ELASTICSEARCH_URL: elasticsearchUrl }: Environment) => {
  if (kafkaBrokers && elasticsearchUrl) return { from: 'environment', kafkaBrokers, elasticsearchUrl } as const
  if (!kafkaBrokers && !elasticsearchUrl) return undefined
  const [set, unset] = kafkaBrokers ? ['KAFKA_BROKERS', 'ELASTICSEARCH_URL'] : ['ELASTICSEARCH_URL', 'KAFKA_BROKERS']
  throw new Error(`${set} is set but ${unset} is not: set both to use running servers, or neither to start new ones`)
}

const requestedSource = ({ COMMISSION_SERVICES: value }: Environment): 'docker' | 'jvm' | undefined => {
  if (!value) return undefined
  if (value === 'docker' || value === 'jvm') return value
  throw new Error(`COMMISSION_SERVICES: expected docker or jvm, got ${JSON.stringify(value)}`)
}

const describeDockerSearch = ({ DOCKER_HOST: host }: Environment): string =>
  `no engine answers at ${host ? `DOCKER_HOST=${host}` : 'its usual sockets, and DOCKER_HOST is not set'}`

const findJava = async (environment: Environment): Promise<ServiceSource | { readonly missing: readonly string[] }> => {
  // The service handles need signals, and the launchers need a shell.
  if (process.platform === 'win32') return { missing: ['not supported on Windows'] }
  const search = await findJdk(environment)
  const maven = await findOnPath('mvn', environment)
  const hasMaven = maven !== undefined || (await findAssembly()) !== undefined
  if (search.jdk !== undefined && hasMaven) return { from: 'jvm', jdk: search.jdk, maven }
  return {
    missing: [
      ...(search.jdk === undefined ? [describeSearch(search)] : []),
      ...(hasMaven ? [] : ['no mvn on the PATH']),
    ],
  }
}

const describeSearch = ({ searched, tooOld }: JdkSearch): string => {
  const found = tooOld.map(({ home, version }) => `Java ${version} in ${home}`).join(', ')
  return `looked at ${searched.join(', ')} and found ${found || 'no JDK'}`
}
