/** `npm run services`: real Kafka and Elasticsearch for development, until interrupted. */
import { progressBar } from './progress-bar.ts'
import { type Services, startServices } from './services.ts'

const say = (line: string): void => console.log(line)

const run = async (): Promise<void> => {
  const progress = progressBar(process.stdout, say)
  await using services = await startServices({ say, progress, environment: process.env })
  say(`\nexport KAFKA_BROKERS=${services.kafkaBrokers} ELASTICSEARCH_URL=${services.elasticsearchUrl}\n`)
  if (services.from === 'environment') return
  say('running until interrupted (Ctrl-C)')
  await untilInterrupted(services)
  await services.stop()
  say('stopped, and their data deleted')
}

const untilInterrupted = async ({ kafka, elasticsearch }: Services): Promise<void> => {
  const interrupted = Promise.withResolvers<undefined>()
  // For good, and not once: npm passes a Ctrl-C on that the terminal has sent here already.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => interrupted.resolve(undefined))
  // Neither signals nor the servers keep this process running.
  const keepRunning = setInterval(() => {}, 60_000)
  const deaths = [kafka, elasticsearch].flatMap(service => service?.died ?? [])
  const death = await Promise.race([interrupted.promise, ...deaths])
  clearInterval(keepRunning)
  if (death !== undefined) throw death
}

try {
  await run()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
