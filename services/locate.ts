/**
 * Decides where Kafka and Elasticsearch come from: the first of these that there is.
 *   1. Addresses in the environment: KAFKA_BROKERS and ELASTICSEARCH_URL. Nothing is started.
 *   2. A Docker engine that answers: containers.
 *   3. A JDK, and Maven when it is the first time: Java processes, assembled from Maven packages.
 * COMMISSION_SERVICES=docker or =jvm leaves only that one of the last two. When there is none, one message says what
 * was looked for, where, and what was found.
 */
import { findAssembly } from './assembly.ts'
import { type Docker, findDocker } from './docker.ts'
import { findJdk, findOnPath, type Jdk, type JdkSearch, oldestJava } from './jvm.ts'
import type { Environment } from './service.ts'

export type Way =
  | { readonly from: 'environment'; readonly kafkaBrokers: string; readonly elasticsearchUrl: string }
  | { readonly from: 'docker'; readonly docker: Docker }
  /** Without Maven only where the assembly has been made before. */
  | { readonly from: 'jvm'; readonly jdk: Jdk; readonly maven: string | undefined }

export const findWay = async (environment: Environment): Promise<Way> => {
  const given = givenAddresses(environment)
  if (given !== undefined) return given

  const only = onlyWay(environment)
  const docker = only === 'jvm' ? undefined : await findDocker(environment)
  if (docker !== undefined) return { from: 'docker', docker }

  const java = only === 'docker' ? { missing: ['not looked for'] } : await findJava(environment)
  if (!('missing' in java)) return java

  throw new Error(
    [
      'Kafka and Elasticsearch cannot be had here. One of these is needed:',
      '- servers that run already: KAFKA_BROKERS and ELASTICSEARCH_URL in the environment. Neither is set',
      `- Docker: ${only === 'jvm' ? 'not looked for' : whereDockerWasLookedFor(environment)}`,
      `- a JDK of ${oldestJava} or newer, and Maven: ${java.missing.join('; ')}`,
      ...(only === undefined ? [] : [`COMMISSION_SERVICES=${only} excludes the other one`]),
    ].join('\n'),
  )
}

const givenAddresses = ({ KAFKA_BROKERS: kafkaBrokers, ELASTICSEARCH_URL: elasticsearchUrl }: Environment) => {
  if (kafkaBrokers && elasticsearchUrl) return { from: 'environment', kafkaBrokers, elasticsearchUrl } as const
  if (!kafkaBrokers && !elasticsearchUrl) return undefined
  const [set, unset] = kafkaBrokers ? ['KAFKA_BROKERS', 'ELASTICSEARCH_URL'] : ['ELASTICSEARCH_URL', 'KAFKA_BROKERS']
  throw new Error(
    `${set} is set but ${unset} is not: set both to use servers that run, or neither to have them started`,
  )
}

const onlyWay = ({ COMMISSION_SERVICES: way }: Environment): 'docker' | 'jvm' | undefined => {
  if (!way) return undefined
  if (way === 'docker' || way === 'jvm') return way
  throw new Error(`COMMISSION_SERVICES: expected docker or jvm, got ${JSON.stringify(way)}`)
}

const whereDockerWasLookedFor = ({ DOCKER_HOST: host }: Environment): string =>
  `no engine answers at ${host ? `DOCKER_HOST=${host}` : 'its usual sockets, and DOCKER_HOST is not set'}`

const findJava = async (environment: Environment): Promise<Way | { readonly missing: readonly string[] }> => {
  // The handles work by signals, and the launchers' end by a shell.
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

const describeSearch = ({ lookedAt, tooOld }: JdkSearch): string => {
  const found = tooOld.map(({ home, version }) => `Java ${version} in ${home}`).join(', ')
  return `looked at ${lookedAt.join(', ')} and found ${found || 'no JDK'}`
}
