/** One projection of a topic by the real projector process, from empty indices until everything is visible. */
import { setTimeout as sleep } from 'node:timers/promises'
import { API_KEYS_GENERATION, FIRST_GENERATION } from '../../schemas/stored/documents.ts'
import type { Bench } from '../rig/bench.ts'
import { newPrefix } from '../rig/elasticsearch.ts'
import { type Running, startProcess } from '../rig/process.ts'
import { showProgress } from '../rig/progress.ts'
import { type Cpu, peakMebibytes, watchCpu } from '../rig/usage.ts'
import type { Topics } from './publish.ts'

export type Projection = {
  readonly prefix: string
  readonly projector: Running
  /** From the log line "projecting" until the published position of every partition was seen at its end. */
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

/** Milliseconds between two looks at the positions: how much later than it was the end may be seen. */
export const LOOK_MS = 100

export type ProjectionOptions = {
  /** Where the projector finds Elasticsearch, if not at its own address. */
  readonly elasticsearchUrl?: string
  readonly flags?: readonly string[]
  /** What the progress is of; without it none is shown. */
  readonly what?: string
  /** Told at every look by which process it is projected, and waited for. */
  readonly onLook?: (projector: Running) => Promise<void>
}

/** Starts one that projects into indices of that prefix. */
export const startProjector = (
  { elasticsearch, signal }: Bench,
  topics: Topics,
  prefix: string,
  { elasticsearchUrl = elasticsearch.url, flags = [] }: ProjectionOptions = {},
): Promise<Running> =>
  startProcess({
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
    },
  })

/** What a projector may leave behind beside its indices. */
export const forgetProjectors = (topics: Topics, prefix: string): Promise<void> =>
  topics.forgetGroups([FIRST_GENERATION, API_KEYS_GENERATION].map(generation => `${prefix}-${generation}`))

/** Starts a projector on indices of their own and waits until it has caught up. It goes on until disposed of. */
export const project = async (bench: Bench, topics: Topics, options: ProjectionOptions = {}): Promise<Projection> => {
  const { services, elasticsearch } = bench
  const prefix = newPrefix()
  const ends = await topics.ends()
  await using stack = new AsyncDisposableStack()
  stack.defer(() => elasticsearch.removeIndices(prefix))
  stack.defer(() => forgetProjectors(topics, prefix))
  const projector = stack.use(await startProjector(bench, topics, prefix, options))
  const cpu = watchCpu({
    'the projector': projector.pid,
    Elasticsearch: services.elasticsearch?.pid,
    Kafka: services.kafka?.pid,
  })
  const { what, onLook } = options
  const look = onLook && (() => onLook(projector))
  await Promise.race([untilCaughtUp(bench, prefix, ends, { what, onLook: look }), projector.died])
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

type Looking = {
  readonly what?: string | undefined
  readonly onLook?: (() => Promise<void>) | undefined
  readonly everyMilliseconds?: number
}

/** A figure of a projection that parked or lost something would be none. */
export const requireAllApplied = ({ records }: Pick<Projection, 'records'>, events: number): void => {
  if (records.applied === events) return
  throw new Error(`of ${events} events published, ${JSON.stringify(records)} were projected`)
}

/** Waits until the published position of every partition has reached an end. */
export const untilCaughtUp = async (
  { elasticsearch, signal, say }: Bench,
  prefix: string,
  ends: readonly number[],
  { what, onLook, everyMilliseconds = LOOK_MS }: Looking = {},
): Promise<void> => {
  const total = ends.reduce((sum, end) => sum + end, 0)
  const progress = what === undefined ? () => {} : showProgress(say, what, total)
  for (;;) {
    const positions = await elasticsearch.positions(prefix, ends.length)
    const done = positions.reduce((sum, position) => sum + position, 0)
    progress(done)
    await onLook?.()
    if (positions.every((position, partition) => position >= (ends[partition] ?? 0))) return
    await sleep(everyMilliseconds, undefined, { signal })
  }
}

/** What a projector counts. */
export const readMetrics = async ({ lines }: Running): Promise<string> => {
  const port = lines.find(({ msg }) => msg === 'admin port')?.address?.port
  return (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
}

/** Of the stream of events, one counter: how often each outcome. */
export const outcomes = (metrics: string, counter: string): Record<string, number> =>
  Object.fromEntries(
    [...metrics.matchAll(new RegExp(`^${counter}\\{stream="events",outcome="(\\w+)"\\} (\\d+)$`, 'gm'))].map(
      ([, outcome, count]) => [outcome ?? '', Number(count)],
    ),
  )
