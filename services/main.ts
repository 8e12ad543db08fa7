/** `npm run services`: real Kafka and Elasticsearch for development, until interrupted. */
import { parseArgs } from 'node:util'
import type { ClusterOptions } from './cluster/cluster.ts'
import { waitForInterruption } from './interruption.ts'
import { progressBar } from './progress-bar.ts'
import { startServices } from './services.ts'

const say = (line: string): void => console.log(line)

const help = `npm run services [-- --brokers 3] [-- --secure]

Starts Kafka and Elasticsearch until interrupted, and prints the settings to use.

  --brokers N   1 or 3 brokers (default 1), as Java processes; with 3 each topic has 3 replicas
  --secure      TLS, SASL (SCRAM-SHA-512, PLAIN, OAUTHBEARER) and client certificates; without an ACL only admin has rights
  --help        this text`

/** Returns undefined for `--help`. */
const readOptions = (): { readonly cluster?: ClusterOptions } | undefined => {
  const { values } = parseArgs({
    options: {
      brokers: { type: 'string', default: '1' },
      secure: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const { brokers, secure, help } = values
  if (help) return undefined
  if (brokers !== '1' && brokers !== '3') throw new Error(`--brokers: expected 1 or 3, got ${brokers}`)
  if (brokers === '1' && !secure) return {}
  return { cluster: { brokers: Number(brokers), secure: secure ? { users: [] } : undefined } }
}

const run = async (options: { readonly cluster?: ClusterOptions }): Promise<void> => {
  const interrupted = waitForInterruption(process)
  const tooEarly = interrupted.then((reason): never => {
    throw new Error(`${reason} while starting`)
  })
  const progress = progressBar(process.stdout, say)
  await using services = await Promise.race([
    startServices({ say, progress, environment: process.env, ...options }),
    tooEarly,
  ])
  const settings = { KAFKA_BROKERS: services.kafkaBrokers, ...services.kafkaSettings }
  const all = Object.entries({ ...settings, ELASTICSEARCH_URL: services.elasticsearchUrl })
  say(`\nexport ${all.map(([name, value]) => `${name}=${value}`).join(' ')}\n`)
  if (services.from === 'environment') return

  say('running until interrupted (Ctrl-C)')
  const deaths = [services.kafka, services.elasticsearch].flatMap(service => service?.died ?? [])
  const reason = await Promise.race([interrupted, ...deaths])
  if (reason instanceof Error) throw reason
  await services.stop()
  say('stopped, data deleted')
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
