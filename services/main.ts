/** `npm run services`: real Kafka and Elasticsearch for development, until interrupted. */
import { once } from 'node:events'
import { Presets, SingleBar } from 'cli-progress'
import type { Progress } from './service.ts'
import { type Services, startServices } from './services.ts'

const say = (line: string): void => console.log(line)

/** A bar on a terminal; elsewhere a line each tenth. */
const bar = (): Progress => {
  let tenth = 0
  const drawn = new SingleBar({ format: '{what} {bar} {percentage} %', clearOnComplete: true }, Presets.shades_classic)
  return ({ what, done, total }) => {
    if (process.stdout.isTTY) {
      if (!drawn.isActive) drawn.start(total, 0, { what })
      drawn.update(done)
      if (done === total) drawn.stop()
    } else if (Math.floor((10 * done) / total) > tenth) {
      tenth = Math.floor((10 * done) / total)
      say(`${what}: ${tenth}0 %`)
    }
  }
}

const run = async (): Promise<void> => {
  await using services = await startServices({ say, progress: bar(), environment: process.env })
  say('')
  say(`export KAFKA_BROKERS=${services.kafkaBrokers} ELASTICSEARCH_URL=${services.elasticsearchUrl}`)
  if (services.from === 'environment') return
  say('')
  say('running until interrupted (Ctrl-C)')
  await untilInterrupted(services)
  say('stopping')
}

const untilInterrupted = async ({ kafka, elasticsearch }: Services): Promise<void> => {
  // Signals and child processes do not keep Node running by themselves.
  const keepRunning = setInterval(() => {}, 60_000)
  try {
    const interrupted = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM'), once(process, 'SIGHUP')])
    const death = await Promise.race([interrupted, kafka?.died, elasticsearch?.died].filter(Boolean))
    if (death instanceof Error) throw death
  } finally {
    clearInterval(keepRunning)
  }
}

try {
  await run()
  say('stopped: nothing is left')
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
