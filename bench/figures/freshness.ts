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
import { documentsOf, type RecordedDocuments, runBareLoop, STEPS_PER_SECOND } from '../processes/bare-loop.ts'
import {
  createSteadyPublisher,
  freePairs,
  LINGER_MS,
  type PublishSteadily,
  type SentPayout,
} from '../processes/constant-rate.ts'
import { startProjection, startProjector, waitForPositions } from '../processes/projection.ts'
import { createTopics } from '../processes/publish.ts'
import { serve } from '../processes/read-rig.ts'
import { startRecordingProxy } from '../processes/recording-proxy.ts'
import type { Bench, Figure, FigureRow, Measure, Picture } from '../rig/bench.ts'
import { createDataset, type DatasetSize } from '../rig/dataset.ts'
import { newPrefix, type RequestCounts } from '../rig/elasticsearch.ts'
import type { FreshnessRate } from '../rig/sizes.ts'
import { percentile, type Spread, spreadOf } from '../rig/statistics.ts'
import { type Cpu, serverPids, watchCpu } from '../rig/usage.ts'

/** Milliseconds between two requests for one probe: a tenth of its age, so that requests do not slow answers down. */
const POLL_MS = 5
const POLL_SHARE = 0.1
/** Milliseconds after which a missing probe is an error. */
const VISIBLE_TIMEOUT_MS = 30_000

/** Targets by rate: p50 and p99 beside the bare loop's, CPU of Elasticsearch beside the bare loop's, milliseconds. */
type Targets = {
  readonly p50?: number
  readonly p99?: number
  readonly cpu?: number
  readonly p99Milliseconds?: number
}
const targets: Readonly<Record<number, Targets>> = {
  200: { p50: 2.5, p99: 5, cpu: 1.5 },
  1000: { p50: 4, p99: 8 },
  2000: { p99Milliseconds: 500 },
}

export const measureFreshness: Measure = async bench => {
  const { organizations, jvmWarmUp, rates, warmUpSeconds, rounds, secondsPerRound, shape, recalculated } =
    bench.sizes.freshness
  const perRate = warmUpSeconds + rounds * secondsPerRound
  const payouts = rates.reduce(
    (sum, { eventsPerSecond }) => sum + eventsPerSecond * perRate,
    jvmWarmUp.eventsPerSecond * jvmWarmUp.seconds,
  )
  const free = freePairs(payouts, organizations, recalculated)
  const size: DatasetSize = { payouts: 0, organizations, recalculated, free, ...shape }
  const { measured: ours, idle } = await measureOurs(bench, size)
  const bare = await measureBare(bench, size)
  const plain = await measurePlain(bench, size)
  return [...figuresOf(bench, { ours, bare, plain }), idleFigure(bench, idle)]
}

const measureOurs = async (bench: Bench, size: DatasetSize): Promise<{ measured: Measured; idle: Idle }> => {
  const { signal, services, sizes, say, elasticsearch } = bench
  await using served = await serve(bench, size)
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
  const publish = createSteadyPublisher({ topics, organizations, shape: size, recalculated, signal })
  const { eventsPerSecond, seconds } = sizes.freshness.jvmWarmUp
  say(`warming up: ${eventsPerSecond} events/s for ${seconds} s`)
  await Promise.race([publish(eventsPerSecond, seconds), died])
  await waitForPositions(bench, projection.prefix, await topics.ends())
  // A projector that has seen every record knows which documents exist. Most projectors were started later.
  await projection.projector.stop()
  await using projector = await startProjector(bench, topics, projection.prefix)
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
  const measured = await measureRates(bench, system, sizes.freshness.secondsPerRound)
  return { measured, idle: await measureIdle(bench, pids, counts) }
}

/** What processes and requests cost while nothing is published. */
type Idle = { readonly seconds: number; readonly cpu: Cpu; readonly controlWrites: number }

const measureIdle = async (
  { sizes, signal }: Bench,
  pids: System['pids'],
  counts: () => Promise<RequestCounts>,
): Promise<Idle> => {
  const before = await counts()
  const cpu = watchCpu(pids)
  const began = performance.now()
  await sleep(sizes.freshness.idleSeconds * 1000, undefined, { signal })
  const used = cpu()
  const seconds = (performance.now() - began) / 1000
  return { seconds, cpu: used, controlWrites: (await counts()).controlWrites - before.controlWrites }
}

/** The bare loop at every rate but the highest, which is about its lag. */
const measureBare = async (bench: Bench, size: DatasetSize): Promise<ReadonlyMap<FreshnessRate, Bare>> => {
  const { services, sizes, elasticsearch, signal } = bench
  const { rates, warmUpSeconds, bareSeconds } = sizes.freshness
  const measured = new Map<FreshnessRate, Bare>()
  const seconds = warmUpSeconds + bareSeconds
  const events = Math.max(...rates.map(({ eventsPerSecond }) => eventsPerSecond)) * seconds
  const documents = await recordDocuments(bench, size, events)
  for (const rate of rates) {
    const prefix = newPrefix()
    try {
      await elasticsearch.createIndices(prefix)
      const { next } = await runBareLoop(documents, bench, prefix, rate.eventsPerSecond, warmUpSeconds)
      const cpu = watchCpu({ Elasticsearch: services.elasticsearch?.pid })
      const began = performance.now()
      const { times } = await runBareLoop(documents, bench, prefix, rate.eventsPerSecond, bareSeconds, next)
      measured.set(rate, { times, cpu: cpu(), seconds: (performance.now() - began) / 1000 })
    } finally {
      await elasticsearch.removeIndices(prefix)
    }
    signal.throwIfAborted()
  }
  return measured
}

type Bare = { readonly times: readonly number[]; readonly cpu: Cpu; readonly seconds: number }

/** Projects events once through a recording proxy. Not measured. */
const recordDocuments = async (bench: Bench, size: DatasetSize, events: number): Promise<RecordedDocuments> => {
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
  await Promise.race([publish(RECORDED_PER_SECOND, events / RECORDED_PER_SECOND), projection.projector.died])
  await waitForPositions(bench, projection.prefix, await topics.ends())
  const { prefix, projector } = projection
  await projector.stop()
  return documentsOf(proxy.recorded.slice(before), prefix, events)
}

const RECORDED_PER_SECOND = 1_000

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
  // Awaited here: its resources are disposed of on return.
  return await measureRates(bench, system, sizes.freshness.plainSecondsPerRound)
}

type Found = { readonly hits: { readonly hits: readonly unknown[] } }

type Poll = (organization: number, id: string) => Promise<'there' | 'not yet' | 'refused'>

/** A system that takes events from a topic and makes them visible. */
type System = {
  readonly what: string
  readonly publish: PublishSteadily
  readonly ask: Poll
  readonly pids: Readonly<Record<string, number | undefined>>
  readonly died: Promise<never>
  /** Records that are published and not visible yet. */
  readonly lag?: () => Promise<number>
  readonly counts?: () => Promise<RequestCounts>
}

/** Milliseconds from publishing to the answer that has it, and to the last request whose answer had not. */
type Probe = { readonly seen: number; readonly notYet: number; readonly requests: number; readonly refused: number }
type Round = {
  readonly probes: readonly Probe[]
  readonly perSecond: number
  readonly cpu: Cpu
  readonly seconds: number
  /** At the end of the round. */
  readonly lag?: number | undefined
  readonly counts?: RequestCounts | undefined
}
type Measured = ReadonlyMap<FreshnessRate, readonly Round[]>

const measureRates = async (bench: Bench, system: System, seconds: number): Promise<Measured> => {
  const { rates, warmUpSeconds, rounds } = bench.sizes.freshness
  const measured = new Map<FreshnessRate, Round[]>()
  for (const rate of rates) {
    await measureRound(bench, system, rate, warmUpSeconds)
    const all: Round[] = []
    for (let round = 1; round <= rounds; round++) all.push(await measureRound(bench, system, rate, seconds))
    const p50 = all.map(({ probes }) => `${percentile(timesOf(probes), 50).toFixed(0)} ms`)
    bench.say(`${rate.eventsPerSecond} events/s, seen ${system.what}: p50 ${p50.join(', ')}`)
    measured.set(rate, all)
  }
  return measured
}

const measureRound = async (
  { signal }: Bench,
  { publish, ask, pids, died, lag, counts }: System,
  { eventsPerSecond, probeEvery }: FreshnessRate,
  seconds: number,
): Promise<Round> => {
  const probes: Promise<Probe>[] = []
  let published = 0
  const onSent = (sent: SentPayout): void => {
    if (published++ % probeEvery !== 0) return
    const probe = sent.acknowledged.then(() => pollUntilVisible(sent, ask, signal))
    probe.catch(() => undefined)
    probes.push(probe)
  }
  const countsBefore = await counts?.()
  const cpu = watchCpu(pids)
  const began = performance.now()
  const perSecond = await Promise.race([publish(eventsPerSecond, seconds, onSent), died])
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
})

/** Requests the record until it is visible. */
const pollUntilVisible = async (
  { id, organization, at }: SentPayout,
  ask: Poll,
  signal: AbortSignal,
): Promise<Probe> => {
  let notYet = 0
  let refused = 0
  for (let asked = 1; ; asked++) {
    const askedAt = performance.now() - at
    const answer = await ask(organization, id)
    const seen = performance.now() - at
    if (answer === 'there') return { seen, notYet, requests: asked, refused }
    if (answer === 'refused') refused++
    if (seen > VISIBLE_TIMEOUT_MS)
      throw new Error(`${id} is not visible ${VISIBLE_TIMEOUT_MS / 1000} s after it was published`)
    notYet = askedAt
    await sleep(Math.max(POLL_MS, POLL_SHARE * seen), undefined, { signal })
  }
}

const timesOf = (probes: readonly Probe[]): number[] => probes.map(({ seen }) => seen)

type All = {
  readonly ours: Measured
  readonly bare: ReadonlyMap<FreshnessRate, Bare>
  readonly plain: Measured
}

/** The first table has the picture, and the notes about all. */
const figuresOf = (bench: Bench, all: All): Figure[] =>
  bench.sizes.freshness.rates.map((rate, index) => ({
    name: 'freshness',
    title: `Freshness at ${rate.eventsPerSecond.toLocaleString('en-US')} events/s`,
    rows: rowsOf(rate, all),
    notes: index === 0 ? notesOf(bench, all.ours) : [],
    ...(index === 0 && { pictures: [pictureOf(bench, all)] }),
  }))

const rowsOf = (rate: FreshnessRate, all: All): FigureRow[] => {
  const { eventsPerSecond } = rate
  const [ours = [], plain = [], bare] = [all.ours.get(rate), all.plain.get(rate), all.bare.get(rate)]
  const to = targets[eventsPerSecond] ?? {}
  const refused = ours.flatMap(({ probes }) => probes).reduce((sum, probe) => sum + probe.refused, 0)
  const ratio = (what: string, value: number, target: number | undefined): FigureRow => ({
    what,
    key: `${what} at ${eventsPerSecond} events/s`,
    unit: '',
    value,
    isRatio: true,
    ...targetField(target),
  })
  const bareTime = (percent: number): number => percentile(bare?.times ?? [], percent)
  const cores = (cpu: Cpu, seconds: number): number => (cpu.Elasticsearch ?? Number.NaN) / seconds
  const oursCores = percentile(
    ours.map(({ cpu, seconds }) => cores(cpu, seconds)),
    50,
  )
  return [
    { what: 'publish → visible, p50', unit: 'ms', ...timeOf(ours, 50) },
    { what: 'publish → visible, p99', unit: 'ms', ...timeOf(ours, 99), ...targetField(to.p99Milliseconds) },
    { what: 'publish → visible, longest', unit: 'ms', ...timeOf(ours, 100) },
    { what: 'bare loop, bulk and refresh, p50', unit: 'ms', value: bareTime(50) },
    { what: 'bare loop, p99', unit: 'ms', value: bareTime(99) },
    { what: 'plain pipe with a refresh a second, p50', unit: 'ms', ...timeOf(plain, 50) },
    { what: 'plain pipe, p99', unit: 'ms', ...timeOf(plain, 99) },
    { what: 'plain pipe, longest', unit: 'ms', ...timeOf(plain, 100) },
    ratio('p50 / the bare loop’s p50', timeOf(ours, 50).value / bareTime(50), to.p50),
    ratio('p99 / the bare loop’s p99', timeOf(ours, 99).value / bareTime(99), to.p99),
    ratio('p50 / the plain pipe’s p50', timeOf(ours, 50).value / timeOf(plain, 50).value, undefined),
    ...(bare === undefined
      ? []
      : [ratio('CPU of Elasticsearch / the bare loop’s', oursCores / cores(bare.cpu, bare.seconds), to.cpu)]),
    { what: 'published', unit: 'events/s', ...spreadOf(ours.map(({ perSecond }) => perSecond)) },
    { what: 'not visible at the end of a round', unit: 'records', ...spreadOf(ours.map(({ lag = 0 }) => lag)) },
    { what: 'refreshes of payouts', unit: '/s', ...perSecondOf(ours, 'refreshes') },
    { what: 'writes of positions and times', unit: '/s', ...perSecondOf(ours, 'controlWrites') },
    { what: 'chains read back', unit: '/s', ...perSecondOf(ours, 'chainsRead') },
    { what: 'answered with 503', unit: 'requests', value: refused },
    ...coresOf(ours),
  ]
}

const perSecondOf = (rounds: readonly Round[], name: keyof RequestCounts): Spread =>
  spreadOf(rounds.map(({ counts, seconds }) => (counts?.[name] ?? 0) / seconds))

const idleFigure = (bench: Bench, { seconds, cpu, controlWrites }: Idle): Figure => ({
  name: 'freshness',
  title: 'At rest',
  rows: [
    { what: 'writes of positions and times', unit: '/s', value: controlWrites / seconds, atMost: 2.5 },
    ...Object.entries(cpu).map(([name, used]) => ({
      what: `CPU of ${name}`,
      unit: 'cores',
      value: used / seconds,
      ...(name === 'the projector' && { atMost: 0.015 }),
    })),
  ],
  notes: [`Nothing is published for ${bench.sizes.freshness.idleSeconds} s, after the rates above.`],
})

/** The percentile of each round. */
const timeOf = (rounds: readonly Round[], percent: number): Spread =>
  spreadOf(rounds.map(({ probes }) => percentile(timesOf(probes), percent)))

const targetField = (target: number | undefined) => (target === undefined ? {} : { atMost: target })

/** Cores that each process used. */
const coresOf = (rounds: readonly Round[]): FigureRow[] =>
  Object.keys(rounds[0]?.cpu ?? {}).map(name => ({
    what: `CPU of ${name}`,
    unit: 'cores',
    ...spreadOf(rounds.flatMap(({ cpu, seconds }) => (cpu[name] === undefined ? [] : [cpu[name] / seconds]))),
  }))

const notesOf = ({ sizes }: Bench, ours: Measured): string[] => {
  const { organizations, rounds, secondsPerRound, plainSecondsPerRound, bareSeconds, rates, shape, recalculated } =
    sizes.freshness
  const every = rates.map(({ eventsPerSecond, probeEvery }) => `one in ${probeEvery} at ${eventsPerSecond} events/s`)
  const all = [...ours.values()].flat().flatMap(({ probes }) => probes)
  const asked = all.reduce((sum, probe) => sum + probe.requests, 0) / all.length
  const unsure = all.map(({ seen, notYet }) => seen - notYet)
  return [
    `Payouts of ${shape.lines} lines and ${shape.steps} steps over ${organizations} organizations, ${100 * recalculated} % of which replace another one, are sent to Kafka when they are due. One request has those due within ${LINGER_MS} ms. Every rate runs ${rounds} times ${secondsPerRound} s after a warm-up. The time runs from the request to Kafka until the answer with the record.`,
    `The probes are ${every.join(', ')}, ${all.length} in all. Each is requested by id from its acknowledgement on. After an answer without it, the next request follows ${POLL_MS} ms later, or after a tenth of its age: ${asked.toFixed(1)} requests each. Precision: half of them were still missing ${percentile(unsure, 50).toFixed(0)} ms before. Publisher and probes are one process on the same cores, the bench; the rows have its CPU.`,
    `The bare loop has the documents of such events, recorded once. It writes those of a step in one bulk request, then refreshes the lists; ${STEPS_PER_SECOND} steps a second, ${bareSeconds} s at every rate. It decides nothing, reads nothing and publishes no position. Its time runs from the bulk request to the end of the refresh.`,
    `The plain pipe is kafkajs and the official client's \`helpers.bulk\`. It writes one document an event into one index with the mappings of the payouts and \`refresh_interval: 1s\`, without refreshes of its own. It runs ${rounds} times ${plainSecondsPerRound} s at every rate, with the same publisher and probes. Projector and API have ended, so it has the machine to itself. A payout is visible when a search for its id, sent straight to Elasticsearch, finds it. A get by id would find it before the refresh.`,
  ]
}

const pictureOf = ({ sizes }: Bench, { ours, plain }: All): Picture => ({
  name: 'freshness',
  title: 'Publish → visible',
  unit: 'ms',
  bars: sizes.freshness.rates.flatMap(rate =>
    [
      { name: 'p50', spread: timeOf(ours.get(rate) ?? [], 50) },
      { name: 'p99', spread: timeOf(ours.get(rate) ?? [], 99) },
      { name: 'plain pipe, p50', spread: timeOf(plain.get(rate) ?? [], 50) },
    ].map(({ name, spread }) => ({ name: `${rate.eventsPerSecond} events/s: ${name}`, ...spread })),
  ),
})
