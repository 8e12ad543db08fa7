/**
 * Kafka and Elasticsearch of a test's own, which it may kill, freeze, stop and start again. Their addresses are given
 * to `createTopics` and `createPrefix`; everything else in this folder finds them by those topics and that prefix.
 */
import { type Service, type ServiceOptions, shortLived } from '../../services/service.ts'
import { type StartOptions, startServer } from '../../services/services.ts'
import type { Scope } from './scope.ts'

export type OwnServices = { readonly kafka: Service; readonly elasticsearch: Service }

type Options = { readonly kafka?: ServiceOptions; readonly elasticsearch?: ServiceOptions }

/**
 * Starts both at once, with small heaps; they and their data are gone when the scope ends, in whatever state they are.
 */
export const startOwnServices = async (scope: Scope, options: Options = {}): Promise<OwnServices> => {
  const [kafka, elasticsearch] = await Promise.all([
    startOwnServer(scope, 'kafka', options.kafka),
    startOwnServer(scope, 'elasticsearch', options.elasticsearch),
  ])
  return { kafka, elasticsearch }
}

/** One of them alone. */
export const startOwnServer = async (
  scope: Scope,
  which: keyof OwnServices,
  options: ServiceOptions = {},
): Promise<Service> => {
  const all: StartOptions = {
    say: () => undefined,
    // Servers that are given are not ours to kill.
    environment: { ...process.env, KAFKA_BROKERS: undefined, ELASTICSEARCH_URL: undefined },
    [which]: { ...small[which], ...options },
  }
  const service = await startServer(which, all)
  scope.onTestFinished(() => service[Symbol.asyncDispose]())
  return service
}

const small = { kafka: { ...shortLived, heap: '256m' }, elasticsearch: { ...shortLived, heap: '512m' } }
