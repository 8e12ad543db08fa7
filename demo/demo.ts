/**
 * The whole demo: services, installation, what is shown on it, the report. Whatever it started is ended and removed
 * when it ends, in reverse order.
 */
import type { Client } from '@elastic/elasticsearch'
import type { Kafka } from 'kafkajs'
import type { Environment, Progress, Say } from '../services/service.ts'
import { type Services, startServices } from '../services/services.ts'
import type { Difference } from './check/compare.ts'
import type { expectedOf } from './data/expected.ts'
import { createPublisher } from './data/publish.ts'
import { linesOf, suggestionsOf, tableOf } from './report.ts'
import { removeIndices, removeTopics } from './run/cleanup.ts'
import { type Installation, install, namesFor } from './run/installation.ts'
import { type Shown, show } from './run/scenario.ts'

export type DemoOptions = {
  readonly seed: number
  /** Ends after the comparison instead of staying up. */
  readonly once: boolean
  /** At most so many years of each organization; 10 is all there is. */
  readonly years: number
  /** Payouts that are published one by one, to measure how long it takes until they are read. */
  readonly pulse: number
}

export type DemoParts = {
  readonly environment: Environment
  readonly say: Say
  readonly progress: Progress
  /** Resolves, with the reason, when the demo shall end. */
  readonly interrupted: Promise<string>
  readonly kafkaAt: (brokers: string) => Kafka
  readonly elasticsearchAt: (url: string) => Client
  /** The program that runs a TypeScript file, and the arguments before that file. */
  readonly node: readonly [program: string, ...args: string[]]
  /** What makes the names of one run its own, on services that others use too. */
  readonly run: string
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number
  /** What is expected of an organization's records; a test expects something else. */
  readonly expect: typeof expectedOf
}

/** Ended before it was through. */
export class Interrupted extends Error {
  override name = 'Interrupted'
}

/**
 * The differences that were found: none when the API returns what was published.
 * @throws Interrupted, or whatever kept it from finding out
 */
export const runDemo = async (options: DemoOptions, parts: DemoParts): Promise<readonly Difference[]> => {
  const { say } = parts
  const stopping = new AbortController()
  const interrupted = parts.interrupted.then((reason): never => {
    throw new Interrupted(reason)
  })
  await using stack = new AsyncDisposableStack()
  const services = stack.use(await Promise.race([startServices(parts), interrupted]))
  const work = demonstrate(options, parts, services, stack, stopping.signal)
  const outcome = Promise.race([work, interrupted, deathOf(services)])
  // What still goes on stops before what it stands on does.
  outcome.catch(error => stopping.abort(error))
  const { installation, ...shown } = await outcome
  for (const line of ['', ...tableOf(shown), '', ...linesOf(shown.differences)]) say(line)
  if (options.once) return shown.differences

  for (const line of ['', ...suggestionsOf(installation, shown), '', 'Running until interrupted (Ctrl-C).']) say(line)
  await Promise.race([parts.interrupted, deathOf(services), installation.died.then(rethrow)])
  return shown.differences
}

const demonstrate = async (
  options: DemoOptions,
  parts: DemoParts,
  services: Services,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Shown & { readonly installation: Installation }> => {
  const { kafkaBrokers, elasticsearchUrl, from } = services
  const names = namesFor(from === 'environment' ? parts.run : undefined)
  const kafka = parts.kafkaAt(kafkaBrokers)
  const client = parts.elasticsearchAt(elasticsearchUrl)
  stack.defer(() => client.close())
  if (from === 'environment') {
    stack.defer(() => removeIndices(names, client))
    stack.defer(() => removeTopics(names, kafka))
  }

  const addresses = { KAFKA_BROKERS: kafkaBrokers, ELASTICSEARCH_URL: elasticsearchUrl }
  const environment = { ...parts.environment, ...addresses }
  const installation = await install(stack, { ...parts, names, partitions: PARTITIONS, environment, signal })

  const publisher = createPublisher(kafka)
  stack.defer(() => publisher.disconnect())
  const progress: Progress = step => {
    if (!signal.aborted) parts.progress(step)
  }
  const showing = show(
    { ...options, partitions: PARTITIONS },
    { ...parts, ...installation, names, publisher, client, progress, signal },
  )
  const shown = await Promise.race([showing, installation.died.then(rethrow)])
  return { ...shown, installation }
}

/** Of the topic of commission events: the default everywhere. */
const PARTITIONS = 6

/** Fails when a server that was started here ends. */
const deathOf = ({ kafka, elasticsearch }: Services): Promise<never> =>
  Promise.race([kafka, elasticsearch].flatMap(service => service?.died.then(rethrow) ?? []))

const rethrow = (error: Error): never => {
  throw error
}
