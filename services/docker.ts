/** Runs Kafka and Elasticsearch as Docker containers. testcontainers' reaper removes them after this process ends. */
import { existsSync } from 'node:fs'
import type { GenericContainer, StartedTestContainer } from 'testcontainers'
import {
  elasticsearchHealth,
  elasticsearchHeap,
  elasticsearchServerSettings,
  elasticsearchVersion,
} from './elasticsearch.ts'
import { kafkaAddresses, kafkaHeap, kafkaServerSettings, kafkaServes, kafkaVersion, newClusterId } from './kafka.ts'
import { freePort } from './ports.ts'
import type { Environment, Service, ServiceOptions } from './service.ts'

export const kafkaImage = `apache/kafka:${kafkaVersion}`
export const elasticsearchImage = `docker.elastic.co/elasticsearch/elasticsearch:${elasticsearchVersion}`

/** Milliseconds until a container must serve, once its image is pulled. */
const startMs = 180_000
/** Milliseconds that a container may take to stop. */
const stopMs = 30_000

type Testcontainers = typeof import('testcontainers')
type Client = Awaited<ReturnType<Testcontainers['getContainerRuntimeClient']>>

export type Docker = { readonly testcontainers: Testcontainers; readonly client: Client }

/** Returns the engine at DOCKER_HOST, or at the usual places; undefined if none answers. */
export const findDocker = async ({ DOCKER_HOST: host }: Environment): Promise<Docker | undefined> => {
  // testcontainers would try the usual places next.
  if (host?.startsWith('unix://') && !existsSync(new URL(host).pathname)) return undefined
  // Loading testcontainers takes a third of a second: load it only if Docker may be used.
  const testcontainers = await import('testcontainers')
  try {
    return { testcontainers, client: await testcontainers.getContainerRuntimeClient() }
  } catch {
    return undefined
  }
}

/** Runs Kafka in a container and waits until it serves. */
export const startKafkaContainer = async (docker: Docker, options: ServiceOptions = {}): Promise<Service> => {
  const { GenericContainer, Wait } = docker.testcontainers
  // The advertised address must be known before the container runs: choose the port here.
  const port = await freePort()
  const address = `${docker.client.info.containerRuntime.host}:${port}`
  const listen = { host: '', port: 9092, controller: 9093 }
  const settings = { ...kafkaServerSettings, ...kafkaAddresses(listen, address), ...options.settings }
  const container = new GenericContainer(kafkaImage)
    .withExposedPorts({ container: listen.port, host: port })
    .withEnvironment({
      ...asKafkaEnvironment(settings),
      CLUSTER_ID: newClusterId(),
      KAFKA_HEAP_OPTS: javaOptions(kafkaHeap, options),
    })
    .withWaitStrategy(Wait.forLogMessage(kafkaServes))
  return startContainer(docker, { name: 'kafka', address, container })
}

/** Runs Elasticsearch in a container without security, like the Java process. */
export const startElasticsearchContainer = async (docker: Docker, options: ServiceOptions = {}): Promise<Service> => {
  const { GenericContainer, Wait } = docker.testcontainers
  const port = await freePort()
  const settings = { ...elasticsearchServerSettings, 'xpack.security.enabled': 'false', ...options.settings }
  const container = new GenericContainer(elasticsearchImage)
    .withExposedPorts({ container: 9200, host: port })
    .withEnvironment({ ...settings, ES_JAVA_OPTS: javaOptions(elasticsearchHeap, options) })
    .withWaitStrategy(
      Wait.forHttp(elasticsearchHealth, 9200).forStatusCodeMatching(status => status === 200 || status === 408),
    )
  const address = `http://${docker.client.info.containerRuntime.host}:${port}`
  return startContainer(docker, { name: 'elasticsearch', address, container })
}

/** Returns the environment variable that the Kafka image maps to a setting. */
export const kafkaVariable = (setting: string): string =>
  `KAFKA_${setting.replaceAll('_', '___').replaceAll('-', '__').replaceAll('.', '_').toUpperCase()}`

const asKafkaEnvironment = (settings: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(settings).map(([setting, value]) => [kafkaVariable(setting), value]))

const javaOptions = (defaultHeap: string, { heap = defaultHeap, javaOptions = [] }: ServiceOptions): string =>
  [`-Xms${heap}`, `-Xmx${heap}`, ...javaOptions].join(' ')

type Containerized = { readonly name: string; readonly address: string; readonly container: GenericContainer }

const startContainer = async (docker: Docker, { name, address, container }: Containerized): Promise<Service> => {
  const started = await container.withStartupTimeout(startMs).start()
  return containerService(docker, { name, address, started })
}

type StartedContainer = { readonly name: string; readonly address: string; readonly started: StartedTestContainer }

const containerService = ({ client }: Docker, { name, address, started }: StartedContainer): Service => {
  const engine = client.container
  const container = engine.getById(started.getId())
  const death = Promise.withResolvers<Error>()
  let run: symbol | undefined
  let frozen = false

  const watch = (): void => {
    const watched = Symbol()
    run = watched
    const onEnd = ({ StatusCode: code }: { StatusCode: number }): void => {
      if (run !== watched) return
      run = undefined
      death.resolve(new Error(`${name}: its container ended with ${code}`))
    }
    // A failed wait says nothing about the container.
    void container.wait().then(onEnd, () => {})
  }
  const thaw = async (): Promise<void> => {
    if (!frozen) return
    frozen = false
    await container.unpause()
  }
  const end = async (how: () => Promise<unknown>): Promise<void> => {
    if (run === undefined) return
    run = undefined
    await thaw()
    await how()
  }
  const stop = () => end(() => engine.stop(container, { timeout: stopMs }))
  const kill = async (): Promise<void> => {
    const ended = container.wait({ condition: 'not-running' })
    await container.kill({ signal: 'SIGKILL' })
    await ended
  }
  watch()
  return {
    name,
    address,
    died: death.promise,
    pid: undefined,
    folder: undefined,
    stop,
    kill: () => end(kill),
    freeze: async () => {
      if (frozen || run === undefined) return
      frozen = true
      await container.pause()
    },
    thaw,
    restart: async () => {
      await stop()
      await started.restart()
      watch()
    },
    [Symbol.asyncDispose]: async () => {
      run = undefined
      await thaw()
      await started.stop({ timeout: 0, remove: true, removeVolumes: true })
    },
  }
}
