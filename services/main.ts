/** `npm run services`: real Kafka and Elasticsearch for development, until interrupted. */
import { waitForInterruption } from './interruption.ts'
import { progressBar } from './progress-bar.ts'
import { startServices } from './services.ts'

const say = (line: string): void => console.log(line)

const run = async (): Promise<void> => {
  const interrupted = waitForInterruption(process)
  const tooEarly = interrupted.then((reason): never => {
    throw new Error(`${reason} while starting`)
  })
  const progress = progressBar(process.stdout, say)
  await using services = await Promise.race([startServices({ say, progress, environment: process.env }), tooEarly])
  say(`\nexport KAFKA_BROKERS=${services.kafkaBrokers} ELASTICSEARCH_URL=${services.elasticsearchUrl}\n`)
  if (services.from === 'environment') return

  say('running until interrupted (Ctrl-C)')
  const deaths = [services.kafka, services.elasticsearch].flatMap(service => service?.died ?? [])
  const reason = await Promise.race([interrupted, ...deaths])
  if (reason instanceof Error) throw reason
  await services.stop()
  say('stopped, data deleted')
}

try {
  await run()
  process.exit(0)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  // Setting only an exit code would let a server that is still starting continue.
  process.exit(1)
}
