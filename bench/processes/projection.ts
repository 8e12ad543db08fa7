/** Projects a topic with the real projector process, from empty indices until everything is visible. */
import { setTimeout as sleep } from 'node:timers/promises'
import { API_KEYS_GENERATION, FIRST_GENERATION } from '../../schemas/stored/documents.ts'
import type { Bench } from '../rig/bench.ts'
import { newPrefix } from '../rig/elasticsearch.ts'
import { type Running, startBenchProcess } from '../rig/process.ts'
import { showProgress } from '../rig/progress.ts'
import { type Cpu, peakMebibytes, serverPids, watchCpu } from '../rig/usage.ts'
import type { Topics } from './publish.ts'

export type RunningProjection = {
  readonly prefix: string
  readonly projector: Running
  /** From the log line "projecting" until the published position of every partition is at its end. */
  readonly seconds: number
  /** CPU seconds in that time. */
  readonly cpu: Cpu
  readonly peakMebibytes: number | undefined
  /** By outcome, as the projector counts them. */
  readonly records: Readonly<Record<string, number>>
  readonly documents: Readonly<Record<string, number>>
  /** Ends the projector and removes its indices. */
  [Symbol.asyncDispose](): Promise<void>
}

/** Milliseconds between two reads of the positions: the largest error of a measured time. */
export const POSITIONS_INTERVAL_MS = 100

type ProjectionOptions = {
  /** Address of Elasticsearch for the projector, if not its own. */
  readonly elasticsearchUrl?: string
  readonly flags?: readonly string[]
  readonly settings?: Readonly<Record<string, string>>
  /** Title of the progress bar; without it none is shown. */
  readonly what?: string
  /** Called, and awaited, after every read of the positions. */
  readonly onPoll?: (projector: Running) => Promise<void>
}

/** Starts a projector that writes indices of this prefix. */
export const startProjector = (
  { elasticsearch, signal }: Bench,
  topics: Topics,
  prefix: string,
  { elasticsearchUrl = elasticsearch.url, flags = [], settings = {} }: ProjectionOptions = {},
): Promise<Running> =>
  startBenchProcess({
    script: 'projector/main.ts',
    ready: 'projecting',
    flags,
    signal,
    settings: {
      ...topics.settings,
      ELASTICSEARCH_URL: elasticsearchUrl,
      ELASTICSEARCH_INDEX_PREFIX: prefix,
      KAFKA_GROUP_ID: prefix,
      PROJECTOR_ADMIN_PORT: '0',
      ...settings,
    },
  })

/** Deletes what a projector may leave besides its indices: its consumer groups. */
export const forgetProjectors = (topics: Topics, prefix: string): Promise<void> =>
  topics.forgetGroups([FIRST_GENERATION, API_KEYS_GENERATION].map(generation => `${prefix}-${generation}`))

/** Starts a projector on empty indices and waits until it has caught up. It runs until it is disposed of. */
export const startProjection = async (
  bench: Bench,
  topics: Topics,
  options: ProjectionOptions = {},
): Promise<RunningProjection> => {
  const { services, elasticsearch } = bench
  const prefix = newPrefix()
  const ends = await topics.ends()
  await using stack = new AsyncDisposableStack()
  stack.defer(() => elasticsearch.removeIndices(prefix))
  stack.defer(() => forgetProjectors(topics, prefix))
  const projector = stack.use(await startProjector(bench, topics, prefix, options))
  const cpu = watchCpu({ 'the projector': projector.pid, ...serverPids(services) })
  const { what, onPoll } = options
  const poll = onPoll && (() => onPoll(projector))
  await Promise.race([waitForPositions(bench, prefix, ends, { what, onPoll: poll }), projector.died])
  const seconds = (Date.now() - projector.ready.time) / 1000
  const used = cpu()

  const metrics = await readMetrics(projector)
  const kept = stack.move()
  return {
    prefix,
    projector,
    seconds,
    cpu: used,
    peakMebibytes: peakMebibytes(projector.pid),
    records: outcomes(metrics, 'commission_records_total'),
    documents: outcomes(metrics, 'commission_documents_total'),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

type PollOptions = {
  readonly what?: string | undefined
  readonly onPoll?: (() => Promise<void>) | undefined
  readonly everyMilliseconds?: number
}

/** @throws Error if records were parked or lost: the figure would be wrong */
export const requireAllApplied = ({ records }: Pick<RunningProjection, 'records'>, events: number): void => {
  if (records.applied === events) return
  throw new Error(`of ${events} events published, ${JSON.stringify(records)} were projected`)
}

/** Waits until the published position of every partition has reached its end. */
export const waitForPositions = async (
  { elasticsearch, signal, say }: Bench,
  prefix: string,
  ends: readonly number[],
  { what, onPoll, everyMilliseconds = POSITIONS_INTERVAL_MS }: PollOptions = {},
): Promise<void> => {
  const total = ends.reduce((sum, end) => sum + end, 0)
  const progress = what === undefined ? () => {} : showProgress(say, what, total)
  for (;;) {
    const positions = await elasticsearch.positions(prefix, ends.length)
    const done = positions.reduce((sum, position) => sum + position, 0)
    progress(done)
    await onPoll?.()
    if (positions.every((position, partition) => position >= (ends[partition] ?? 0))) return
    await sleep(everyMilliseconds, undefined, { signal })
  }
}

/** Returns the metrics of a projector. @throws Error if it does not answer with them */
export const readMetrics = async ({ lines }: Running): Promise<string> => {
  const port = lines.find(({ msg }) => msg === 'the admin port listens')?.address?.port
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`)
  const text = await answer.text()
  if (!answer.ok) throw new Error(`the projector answers ${answer.status} to /metrics: ${text.slice(0, 500)}`)
  return text
}

/** One counter of the events stream, by outcome. */
export const outcomes = (metrics: string, counter: string): Record<string, number> =>
  Object.fromEntries(
    [...metrics.matchAll(new RegExp(`^${counter}\\{[^}]*stream="events",outcome="(\\w+)"\\} (\\d+)$`, 'gm'))].map(
      ([, outcome, count]) => [outcome ?? '', Number(count)],
    ),
  )
