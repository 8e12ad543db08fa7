/**
 * Freshness: the time from publishing an event to seeing it through the API, at steady rates over several
 * organizations, while most payouts replace another one. At the same rates: a bare loop that writes the same documents
 * and refreshes, and a plain pipe that Elasticsearch refreshes once a second. Some events are probes: each is requested
 * by id until it is visible.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { recordId } from '../../schemas/stored/documents.ts'
import { helpersBulk, startPipe } from '../peers.ts'
import { authorization } from '../processes/api-process.ts'
import { type RecordedDocuments, recordedDocuments, runBareLoop } from '../processes/bare-loop.ts'
import {
  createSteadyPublisher,
  type EventStream,
  freePairs,
  type PublishSteadily,
  type SentPayout,
} from '../processes/constant-rate.ts'
import { startProjection, startProjector, waitForPositions } from '../processes/projection.ts'
import { createTopics, type Topics } from '../processes/publish.ts'
import { type Served, serve } from '../processes/read-rig.ts'
import { startRecordingProxy } from '../processes/recording-proxy.ts'
import type { Bench, Measure } from '../rig/bench.ts'
import { takeCore } from '../rig/cores.ts'
import { createDataset, type DatasetSize } from '../rig/dataset.ts'
import { newPrefix, type RequestCounts } from '../rig/elasticsearch.ts'
import type { FreshnessRate } from '../rig/sizes.ts'
import { percentile } from '../rig/statistics.ts'
import { COMPILERS, type Pids, serverPids, watchCpu } from '../rig/usage.ts'
import {
  type Bare,
  type FreshnessRound,
  figuresOf,
  type Idle,
  idleFigure,
  isComparedWithPipe,
  type Measured,
  nameOfRate,
  PROBE_PAUSE_MS,
  PROBE_PAUSE_SHARE,
  type Probe,
  perSecondOf,
  SHARED_PAUSE_MS,
  timesOf,
} from './freshness-figure.ts'

/**
 * Seconds between two looks at the compilers of the JVMs, and the cores below which they are quiet. While they compile,
 * they take the cores that the measured processes need, and the bare loop runs when they have ended. Where their CPU is
 * not known, the warm-up has a fixed length.
 */
const WARM_UP_LOOK_SECONDS = 15
const QUIET_CORES = 0.1
const WARM_UP_UNSEEN_SECONDS = 60

/** Milliseconds after which a missing probe is an error. */
const VISIBLE_TIMEOUT_MS = 30_000

export const measureFreshness: Measure = async bench => {
  const size = sizeOf(bench.sizes.freshness)
  const { measured: ours, idle } = await measureOurs(bench, size)
  const bare = await measureBare(bench, size, ours)
  const plain = await measurePlain(bench, size)
  return [...figuresOf(bench, { ours, bare, plain }), idleFigure(bench, idle)]
}

/** The dataset of a run at all rates: reps and periods for its payouts, and this many payouts before. */
export const sizeOf = (sizes: Bench['sizes']['freshness'], payouts = 0): DatasetSize => {
  const { organizations, jvmWarmUp, rates, warmUpSeconds, rounds, secondsPerRound, shape, recalculated } = sizes
  const perRate = warmUpSeconds + rounds * secondsPerRound
  const published = rates.reduce(
    (sum, { eventsPerSecond }) => sum + eventsPerSecond * perRate,
    jvmWarmUp.eventsPerSecond * jvmWarmUp.seconds,
  )
  return { payouts, organizations, recalculated, free: freePairs(published, organizations, recalculated), ...shape }
}

/** Measures projector and API. The payouts of `size` are there before, and are replaced as well. */
export const measureOurs = async (bench: Bench, size: DatasetSize): Promise<{ measured: Measured; idle: Idle }> => {
  await using stack = new AsyncDisposableStack()
  const { system, topics, prefix } = await startOurs(bench, size, stack)
  const measured = await measureRates(bench, system, bench.sizes.freshness.secondsPerRound)
  // The last records of the last rate would be measured as idle time.
  await waitForPositions(bench, prefix, await topics.ends())
  return { measured, idle: await measureIdle(bench, system) }
}

type Ours = Pick<Served, 'holders' | 'api' | 'projection'> & {
  readonly system: System & { readonly counts: () => Promise<RequestCounts> }
  readonly topics: Topics
  readonly prefix: string
}

/** Starts projector and API on the data of `size`, and warms them up. @param settings of the projector */
export const startOurs = async (
  bench: Bench,
  size: DatasetSize,
  stack: AsyncDisposableStack,
  settings: Readonly<Record<string, string>> = {},
): Promise<Ours> => {
  const { signal, services, sizes, say, elasticsearch } = bench
  const served = stack.use(await serve(bench, size, settings))
  const { topics, holders, api, projection, died } = served
  const ask: Poll = async (organization, id) => {
    const url = `${api.url}/payouts/${id}`
    const answer = await fetch(url, { headers: authorization(holders[organization]?.key ?? ''), signal })
    await answer.arrayBuffer()
    if (answer.status === 200) return 'there'
    if (answer.status === 404) return 'not yet'
    if (answer.status === 503) return 'refused'
    throw new Error(`the API answers ${answer.status} to ${url}\n${api.process.last()}`)
  }
  const organizations = holders.map(({ organization }) => organization)
  const { recalculated } = sizes.freshness
  const earlier = size.payouts > 0 ? createDataset(size).currentIds() : undefined
  const publish = createSteadyPublisher({ topics, organizations, shape: size, recalculated, earlier, signal })
  const { eventsPerSecond, seconds } = sizes.freshness.jvmWarmUp
  say(`warming up: ${eventsPerSecond} events/s until the compilers of the JVMs are quiet, ${seconds} s at most`)
  for (let warmed = 0; warmed < seconds; warmed += WARM_UP_LOOK_SECONDS) {
    const look = Math.min(WARM_UP_LOOK_SECONDS, seconds - warmed)
    const cpu = watchCpu(serverPids(services))
    await Promise.race([publish(eventsPerSecond, look), died])
    const compiled = cpu()[COMPILERS]
    const isQuiet = compiled === undefined ? warmed + look >= WARM_UP_UNSEEN_SECONDS : compiled / look < QUIET_CORES
    if (isQuiet) break
  }
  await waitForPositions(bench, projection.prefix, await topics.ends())
  // A projector that has seen every record knows which documents exist. Most projectors were started later.
  await projection.projector.stop()
  const projector = stack.use(await startProjector(bench, topics, projection.prefix, { settings }))
  const pids = {
    'the projector': projector.pid,
    'the API': api.process.pid,
    ...serverPids(services),
  }
  const lag = async (): Promise<number> => {
    const ends = await topics.ends()
    const positions = await elasticsearch.positions(projection.prefix, ends.length)
    return ends.reduce((sum, end, partition) => sum + end - (positions[partition] ?? 0), 0)
  }
  const counts = () => elasticsearch.counts(projection.prefix)
  const ended = Promise.race([died, projector.died])
  ended.catch(() => undefined)
  const system = { what: 'through the API', publish, ask, pids, died: ended, lag, counts }
  return { system, topics, prefix: projection.prefix, holders, api, projection }
}

const measureIdle = async ({ sizes, signal }: Bench, { pids, counts }: Ours['system']): Promise<Idle> => {
  const before = await counts()
  const cpu = watchCpu(pids)
  const began = performance.now()
  await sleep(sizes.freshness.idleSeconds * 1000, undefined, { signal })
  const used = cpu()
  const seconds = (performance.now() - began) / 1000
  return { seconds, cpu: used, controlWrites: (await counts()).controlWrites - before.controlWrites }
}

/** Runs the bare loop at every rate, each in fresh indices, with as many refreshes a second as the projector made. */
const measureBare = async (
  bench: Bench,
  size: DatasetSize,
  ours: Measured,
): Promise<ReadonlyMap<FreshnessRate, Bare>> => {
  const { services, sizes, elasticsearch, signal } = bench
  const { rates, warmUpSeconds, bareSeconds } = sizes.freshness
  const measured = new Map<FreshnessRate, Bare>()
  const seconds = warmUpSeconds + bareSeconds
  const recordedOf = new Map<EventStream, RecordedDocuments>()
  for (const stream of ['mix', 'payouts'] as const) {
    const events = Math.max(0, ...rates.filter(of => streamOf(of) === stream).map(of => of.eventsPerSecond)) * seconds
    if (events > 0) recordedOf.set(stream, await recordBareDocuments(bench, size, stream, events))
  }
  for (const rate of rates) {
    const prefix = newPrefix()
    const { eventsPerSecond } = rate
    const documents = recordedOf.get(streamOf(rate))
    if (documents === undefined) throw new Error('no documents were recorded')
    using _ = rate.coreTaken ? takeCore() : undefined
    const stepsPerSecond = Math.max(1, Math.round(perSecondOf(ours.get(rate) ?? [], 'refreshes').value))
    const pace = { eventsPerSecond, stepsPerSecond }
    try {
      await elasticsearch.createIndices(prefix)
      const { next } = await runBareLoop(documents, bench, prefix, pace, warmUpSeconds)
      const cpu = watchCpu({ Elasticsearch: services.elasticsearch?.pid })
      const began = performance.now()
      const { times } = await runBareLoop(documents, bench, prefix, pace, bareSeconds, next)
      measured.set(rate, { times, stepsPerSecond, cpu: cpu(), seconds: (performance.now() - began) / 1000 })
    } finally {
      await elasticsearch.removeIndices(prefix)
    }
    signal.throwIfAborted()
  }
  return measured
}

/** Projects events once through a recording proxy. Not measured. */
const recordBareDocuments = async (
  bench: Bench,
  size: DatasetSize,
  stream: EventStream,
  events: number,
): Promise<RecordedDocuments> => {
  const { signal, elasticsearch, sizes } = bench
  await using topics = await createTopics(bench)
  const { organizations, peopleAndPeriods } = createDataset(size)
  const recorded = [...peopleAndPeriods()]
  await topics.publishAll(recorded, recorded.length, 'publishing reps and periods')
  const isOfLists = (path: string): boolean => path.startsWith('/_bulk?filter_path=')
  await using proxy = await startRecordingProxy(elasticsearch.url, isOfLists)
  await using projection = await startProjection(bench, topics, {
    elasticsearchUrl: proxy.url,
    what: 'recording the documents for the bare loop',
  })
  const before = proxy.recorded.length
  const { recalculated } = sizes.freshness
  const publish = createSteadyPublisher({ topics, organizations, shape: size, recalculated, signal })
  const published = publish(RECORDED_PER_SECOND, events / RECORDED_PER_SECOND, undefined, stream)
  await Promise.race([published, projection.projector.died])
  await waitForPositions(bench, projection.prefix, await topics.ends())
  const { prefix, projector } = projection
  await projector.stop()
  return recordedDocuments(proxy.recorded.slice(before), prefix, events)
}

const RECORDED_PER_SECOND = 1_000

const streamOf = ({ stream }: FreshnessRate): EventStream => stream ?? 'mix'

/** Has the machine to itself: projector and API have ended. */
const measurePlain = async (bench: Bench, size: DatasetSize): Promise<Measured> => {
  const { signal, services, sizes, elasticsearch } = bench
  await using topics = await createTopics(bench)
  const { organizations } = createDataset(size)
  await using plain = await startPipe(bench, topics, helpersBulk, { refresh_interval: '1s' })
  const ask: Poll = async (organization, id) => {
    // A search: a get by id would find it before the refresh.
    const search = { size: 1, query: { term: { _id: recordId(organizations[organization]?.id ?? '', id) } } }
    const { hits } = await elasticsearch.call<Found>('POST', `/${plain.index}/_search`, search)
    return hits.hits.length > 0 ? 'there' : 'not yet'
  }
  const pids = {
    'the plain pipe': plain.process.pid,
    ...serverPids(services),
  }
  const { recalculated } = sizes.freshness
  const publish = createSteadyPublisher({ topics, organizations, shape: size, recalculated, signal })
  const system = { what: 'through the plain pipe', publish, ask, pids, died: plain.process.died }
  const rates = sizes.freshness.rates.filter(isComparedWithPipe)
  // Awaited here: its resources are disposed of on return.
  return await measureRates(bench, system, sizes.freshness.plainSecondsPerRound, rates)
}

type Found = { readonly hits: { readonly hits: readonly unknown[] } }

type Poll = (organization: number, id: string) => Promise<'there' | 'not yet' | 'refused'>

/** A system that takes events from a topic and makes them visible. */
export type System = {
  readonly what: string
  readonly publish: PublishSteadily
  readonly ask: Poll
  readonly pids: Pids
  readonly died: Promise<never>
  /** Records that are published and not visible yet. */
  readonly lag?: () => Promise<number>
  readonly counts?: () => Promise<RequestCounts>
}

const measureRates = async (
  bench: Bench,
  system: System,
  seconds: number,
  rates = bench.sizes.freshness.rates,
): Promise<Measured> => {
  const { warmUpSeconds, rounds } = bench.sizes.freshness
  const measured = new Map<FreshnessRate, FreshnessRound[]>()
  for (const rate of rates) {
    await measureRound(bench, system, rate, warmUpSeconds)
    const all: FreshnessRound[] = []
    for (let round = 1; round <= rounds; round++) all.push(await measureRound(bench, system, rate, seconds))
    const p50 = all.map(({ probes }) => `${percentile(timesOf(probes), 50).toFixed(0)} ms`)
    bench.say(`${nameOfRate(rate)}, seen ${system.what}: p50 ${p50.join(', ')}`)
    measured.set(rate, all)
  }
  return measured
}

/** Publishes at a rate for some seconds, and waits until each probe is visible. */
export const measureRound = async (
  { signal }: Bench,
  { publish, ask, pids, died, lag, counts }: System,
  rate: FreshnessRate,
  seconds: number,
): Promise<FreshnessRound> => {
  const { eventsPerSecond, probeEvery } = rate
  using _ = rate.coreTaken ? takeCore() : undefined
  const probes: Promise<Probe>[] = []
  const waiting = new Set<string>()
  let published = 0
  const onSent = (sent: SentPayout): void => {
    if (published++ % probeEvery !== 0) return
    const probe = sent.acknowledged.then(() => pollUntilVisible(sent, ask, waiting, signal))
    probe.catch(() => undefined)
    probes.push(probe)
  }
  const countsBefore = await counts?.()
  const cpu = watchCpu(pids)
  const began = performance.now()
  const perSecond = await Promise.race([publish(eventsPerSecond, seconds, onSent, streamOf(rate)), died])
  const counted = { cpu: cpu(), seconds: (performance.now() - began) / 1000, lag: await lag?.() }
  const countsAfter = await counts?.()
  return {
    probes: await Promise.race([Promise.all(probes), died]),
    perSecond,
    ...counted,
    counts: countsBefore && countsAfter && difference(countsBefore, countsAfter),
  }
}

const difference = (before: RequestCounts, after: RequestCounts): RequestCounts => ({
  controlWrites: after.controlWrites - before.controlWrites,
  refreshes: after.refreshes - before.refreshes,
  chainsRead: after.chainsRead - before.chainsRead,
  chainsMissing: after.chainsMissing - before.chainsMissing,
})

/** Requests the record until it is visible. All that are `waiting` share the requests that probes may send. */
const pollUntilVisible = async (
  { id, organization, at }: SentPayout,
  ask: Poll,
  waiting: Set<string>,
  signal: AbortSignal,
): Promise<Probe> => {
  waiting.add(id)
  let notYet = 0
  let refused = 0
  for (let asked = 1; ; asked++) {
    const askedAt = performance.now() - at
    const answer = await ask(organization, id)
    const seen = performance.now() - at
    if (answer === 'there') {
      waiting.delete(id)
      return { seen, notYet, requests: asked, refused }
    }
    if (answer === 'refused') refused++
    if (seen > VISIBLE_TIMEOUT_MS)
      throw new Error(`${id} is not visible ${VISIBLE_TIMEOUT_MS / 1000} s after it was published`)
    notYet = askedAt
    await sleep(Math.max(PROBE_PAUSE_MS, PROBE_PAUSE_SHARE * seen, SHARED_PAUSE_MS * waiting.size), undefined, {
      signal,
    })
  }
}
