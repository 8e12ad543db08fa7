/** The whole demo: services, installation, scenario, report. At the end it removes all that it started. */
import type { Client } from '@elastic/elasticsearch'
import type { Kafka } from 'kafkajs'
import type { Environment, ReportProgress, Say } from '../services/service.ts'
import { type Services, startServices } from '../services/services.ts'
import type { AnswerDifference } from './check/compare.ts'
import type { expectedOf } from './data/expected.ts'
import { createPublisher } from './data/publish.ts'
import { differenceLines, figureTable, suggestionsOf } from './report.ts'
import { removeIndices, removeTopics } from './run/cleanup.ts'
import { startExplorer } from './run/explorer.ts'
import { type DemoInstallation, install, namesFor } from './run/installation.ts'
import { rethrow } from './run/processes.ts'
import { runScenario, type ScenarioResult } from './run/scenario.ts'
import { storyOf } from './story.ts'

export type DemoOptions = {
  readonly seed: number
  /** Ends after the comparison instead of staying up. */
  readonly once: boolean
  /** Maximum number of years of each organization; 10 takes all. */
  readonly years: number
  /** Payouts published one by one, to measure the time from publishing to reading. */
  readonly probes: number
}

export type DemoParts = {
  readonly environment: Environment
  readonly say: Say
  readonly progress: ReportProgress
  /** Resolves with the reason when the demo must end. */
  readonly interrupted: Promise<string>
  readonly kafkaAt: (brokers: string) => Kafka
  readonly elasticsearchAt: (url: string) => Client
  /** The program that runs a TypeScript file, and its arguments before that file. */
  readonly node: readonly [program: string, ...args: string[]]
  /** Makes the names of a run unique on services that others use too. */
  readonly run: string
  /** Milliseconds of a clock that never goes back. */
  readonly elapsed: () => number
  /** Returns the expected records of an organization. Tests replace it. */
  readonly expect: typeof expectedOf
}

/** The demo was interrupted. */
export class Interrupted extends Error {
  override name = 'Interrupted'
}

/**
 * Returns the differences: none if the API returns what was published.
 * @throws Interrupted, or the error that prevented the comparison
 */
export const runDemo = async (options: DemoOptions, parts: DemoParts): Promise<readonly AnswerDifference[]> => {
  const { say } = parts
  const stopping = new AbortController()
  const interrupted = parts.interrupted.then((reason): never => {
    throw new Interrupted(reason)
  })
  await using stack = new AsyncDisposableStack()
  const services = stack.use(await Promise.race([startServices(parts), interrupted]))
  const work = demonstrate(options, parts, services, stack, stopping.signal)
  const outcome = Promise.race([work, interrupted, rejectOnDeath(services)])
  // Stops the work before the stack stops the services that it uses.
  outcome.catch(error => stopping.abort(error))
  const { installation, ...shown } = await outcome
  for (const line of ['', ...figureTable(shown), '', ...differenceLines(shown.differences)]) say(line)
  if (options.once) return shown.differences

  const { base, folder } = installation
  const [node] = parts.node
  const explorer = await Promise.race([startExplorer(stack, { base, folder, node, say }), interrupted])
  const suggestions = suggestionsOf({ ...installation, explorer }, shown)
  const [first] = shown.cases
  const story = first === undefined ? [] : ['', ...storyOf(first, explorer)]
  for (const line of [...story, '', ...suggestions, '', 'Running until interrupted (Ctrl-C).']) say(line)
  await Promise.race([parts.interrupted, rejectOnDeath(services), installation.died.then(rethrow)])
  return shown.differences
}

const demonstrate = async (
  options: DemoOptions,
  parts: DemoParts,
  services: Services,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<ScenarioResult & { readonly installation: DemoInstallation }> => {
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
  const progress: ReportProgress = step => {
    if (!signal.aborted) parts.progress(step)
  }
  const showing = runScenario(
    { ...options, partitions: PARTITIONS },
    { ...parts, ...installation, names, publisher, client, progress, signal },
  )
  const shown = await Promise.race([showing, installation.died.then(rethrow)])
  return { ...shown, installation }
}

/** Of the events topic: the default of the settings. */
const PARTITIONS = 6

/** Rejects when a server that the demo started ends. */
const rejectOnDeath = ({ kafka, elasticsearch }: Services): Promise<never> =>
  Promise.race([kafka, elasticsearch].flatMap(service => service?.died.then(rethrow) ?? []))
