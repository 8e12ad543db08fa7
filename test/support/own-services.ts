/**
 * A test's own Kafka and Elasticsearch, which it may kill, freeze, stop and restart. Pass their addresses to
 * `createTopics` and `createPrefix`.
 */
import type { ClusterOptions, KafkaCluster } from '../../services/cluster/cluster.ts'
import { type Service, type ServiceOptions, shortLived } from '../../services/service.ts'
import { type StartOptions, startCluster, startServer } from '../../services/services.ts'
import type { Scope } from './scope.ts'

export type OwnServices = { readonly kafka: Service; readonly elasticsearch: Service }

type Options = { readonly kafka?: ServiceOptions; readonly elasticsearch?: ServiceOptions }

/** Starts both with small heaps. They are removed with their data when the scope ends. */
export const startOwnServices = async (scope: Scope, options: Options = {}): Promise<OwnServices> => {
  const [kafka, elasticsearch] = await Promise.all([
    startOwnServer(scope, 'kafka', options.kafka),
    startOwnServer(scope, 'elasticsearch', options.elasticsearch),
  ])
  return { kafka, elasticsearch }
}

export const startOwnServer = async (
  scope: Scope,
  which: keyof OwnServices,
  options: ServiceOptions = {},
): Promise<Service> => {
  const all: StartOptions = {
    say: () => undefined,
    environment: ownEnvironment,
    [which]: { ...small[which], ...options },
  }
  const service = await startServer(which, all)
  scope.onTestFinished(() => service[Symbol.asyncDispose]())
  return service
}

/** Starts several brokers with small heaps, as Java processes. They are removed with their data when the scope ends. */
export const startOwnCluster = async (scope: Scope, options: ClusterOptions): Promise<KafkaCluster> => {
  const cluster = await startCluster(options, {
    say: () => undefined,
    environment: { ...ownEnvironment, COMMISSION_SERVICES: 'jvm' },
    kafka: small.kafka,
  })
  scope.onTestFinished(() => cluster[Symbol.asyncDispose]())
  return cluster
}

/** Without servers from the environment: a test must not kill those. */
const ownEnvironment = { ...process.env, KAFKA_BROKERS: undefined, ELASTICSEARCH_URL: undefined }

const small = { kafka: { ...shortLived, heap: '256m' }, elasticsearch: { ...shortLived, heap: '512m' } }
