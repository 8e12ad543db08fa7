/** `npm run services`: real Kafka and Elasticsearch for development, until interrupted. */
import { parseArgs } from 'node:util'
import type { ClusterOptions, KafkaCluster } from './cluster/cluster.ts'
import { waitForInterruption } from './interruption.ts'
import { progressBar } from './progress-bar.ts'
import type { Service } from './service.ts'
import { type StartOptions, startOnly, startServices } from './services.ts'

const say = (line: string): void => console.log(line)

const help = `npm run services [-- --brokers 3] [-- --secure] [-- --only kafka]

Starts Kafka and Elasticsearch until interrupted, and prints the settings to use, and the process id and the data of each
server. If one server ends, all are stopped. At the end their data is deleted. Each start of Kafka is a new cluster.

  --only WHICH  kafka or elasticsearch: starts only this one. The address of the other one stays as it is in the environment
  --brokers N   1 or 3 brokers (default 1), as Java processes; with 3 each topic has 3 replicas
  --secure      TLS, SASL (SCRAM-SHA-512, PLAIN, OAUTHBEARER) and client certificates; without an ACL only admin has rights
  --help        this text`

type Options = { readonly only?: 'kafka' | 'elasticsearch'; readonly cluster?: ClusterOptions }

/** Returns undefined for `--help`. */
const readOptions = (): Options | undefined => {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      brokers: { type: 'string', default: '1' },
      secure: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const { only, brokers, secure, help } = values
  if (help) return undefined
  if (brokers !== '1' && brokers !== '3') throw new Error(`--brokers: expected 1 or 3, got ${brokers}`)
  if (only !== undefined && only !== 'kafka' && only !== 'elasticsearch')
    throw new Error(`--only: expected kafka or elasticsearch, got ${only}`)
  const plain = brokers === '1' && !secure
  if (only === 'elasticsearch' && !plain) throw new Error('--brokers and --secure are for Kafka: leave them out')
  const cluster = { brokers: Number(brokers), secure: secure ? { users: [] } : undefined }
  return { ...(only && { only }), ...(!plain && { cluster }) }
}

type Running = AsyncDisposable & {
  /** For the environment of clients. */
  readonly settings: Readonly<Record<string, string>>
  /** Those that were started here. */
  readonly servers: readonly Service[]
}

const start = async ({ only, ...options }: Options, how: StartOptions): Promise<Running> => {
  if (only === undefined) {
    const services = await startServices({ ...how, ...options })
    const { kafkaBrokers, kafkaSettings, elasticsearchUrl, kafka, elasticsearch } = services
    const settings = { KAFKA_BROKERS: kafkaBrokers, ...kafkaSettings, ELASTICSEARCH_URL: elasticsearchUrl }
    const servers = [kafka, elasticsearch].flatMap(service => service ?? [])
    return { settings, servers, [Symbol.asyncDispose]: services.stop }
  }
  const stack = new AsyncDisposableStack()
  const service = stack.use(await startOnly(only, { ...how, ...options }))
  const name = only === 'kafka' ? 'KAFKA_BROKERS' : 'ELASTICSEARCH_URL'
  const settings = { [name]: service.address, ...('settings' in service ? service.settings : {}) }
  return { settings, servers: [service], [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

const nodesOf = (service: Service | KafkaCluster): readonly Service[] =>
  'nodes' in service ? service.nodes : [service]

const run = async (options: Options): Promise<void> => {
  const interrupted = waitForInterruption(process)
  const tooEarly = interrupted.then((reason): never => {
    throw new Error(`${reason} while starting`)
  })
  const progress = progressBar(process.stdout, say)
  await using running = await Promise.race([start(options, { say, progress, environment: process.env }), tooEarly])
  const { settings, servers } = running
  for (const { name, pid, folder } of servers.flatMap(nodesOf)) {
    if (pid !== undefined) say(`${name}: process ${pid}, data in ${folder}`)
  }
  const all = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
  say(`\nexport ${all.join(' ')}\n`)
  if (servers.length === 0) return

  say('running until interrupted (Ctrl-C), or until a server ends; then the data is deleted')
  const reason = await Promise.race([interrupted, ...servers.map(({ died }) => died)])
  await running[Symbol.asyncDispose]()
  if (!(reason instanceof Error)) return say('stopped, data deleted')
  const stopped = servers.length === 1 ? 'its data is deleted' : 'all servers are stopped, and their data is deleted'
  throw new Error(`${reason.message}\n${stopped}`)
}

try {
  const options = readOptions()
  if (options === undefined) say(help)
  else await run(options)
  process.exit(0)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  // Setting only an exit code would let a server that is still starting continue.
  process.exit(1)
}
