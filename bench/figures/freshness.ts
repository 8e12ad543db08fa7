/**
 * Freshness: the time from publishing an event to seeing it through the API, at steady rates over several
 * organizations. At the same rates: the time to finding it in an index that a plain pipe writes and Elasticsearch
 * refreshes once a second. Some events are probes: each is requested by id until it is visible.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { recordId } from '../../schemas/stored/documents.ts'
import { helpersBulk, startPipe } from '../peers.ts'
import { authorization } from '../processes/api-process.ts'
import { createSteadyPublisher, LINGER_MS, type PublishSteadily, type SentPayout } from '../processes/constant-rate.ts'
import { createTopics } from '../processes/publish.ts'
import { serve } from '../processes/read-rig.ts'
import type { Bench, Figure, FigureRow, Measure, Picture } from '../rig/bench.ts'
import { createDataset, type DatasetSize } from '../rig/dataset.ts'
import type { FreshnessRate } from '../rig/sizes.ts'
import { percentile, type Spread, spreadOf } from '../rig/statistics.ts'
import { type Cpu, serverPids, watchCpu } from '../rig/usage.ts'

/** Milliseconds between two requests for one probe: a tenth of its age, so that requests do not slow answers down. */
const POLL_MS = 5
const POLL_SHARE = 0.1
/** Milliseconds after which a missing probe is an error. */
const VISIBLE_TIMEOUT_MS = 30_000

/** Targets by rate: milliseconds, and the share of the plain pipe's p50. */
const targets: Readonly<Record<number, { p50?: number; p99?: number; ratio?: number }>> = {
  200: { p50: 40, p99: 150, ratio: 1 / 12 },
  2000: { p99: 300 },
}

export const measureFreshness: Measure = async bench => {
  const { organizations, jvmWarmUp, rates, warmUpSeconds, rounds, secondsPerRound, shape } = bench.sizes.freshness
  const perRate = warmUpSeconds + rounds * secondsPerRound
  const payouts = rates.reduce(
    (sum, { eventsPerSecond }) => sum + eventsPerSecond * perRate,
    jvmWarmUp.eventsPerSecond * jvmWarmUp.seconds,
  )
  const free = Math.ceil(payouts / organizations)
  const size: DatasetSize = { payouts: 0, organizations, recalculated: 0, free, ...shape }
  const ours = await measureOurs(bench, size)
  return figuresOf(bench, ours, await measurePlain(bench, size))
}

const measureOurs = async (bench: Bench, size: DatasetSize): Promise<Measured> => {
  const { signal, services, sizes, say } = bench
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
  const pids = {
    'the projector': projection.projector.pid,
    'the API': api.process.pid,
    ...serverPids(services),
  }
  const organizations = holders.map(({ organization }) => organization)
  const publish = createSteadyPublisher({ topics, organizations, shape: size, signal })
  const system = { what: 'through the API', publish, ask, pids, died }
  const { eventsPerSecond, seconds } = sizes.freshness.jvmWarmUp
  say(`warming up: ${eventsPerSecond} events/s for ${seconds} s`)
  await Promise.race([publish(eventsPerSecond, seconds), died])
  // Awaited here: its resources are disposed of on return.
  return await measureRates(bench, system, sizes.freshness.secondsPerRound)
}

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
  const publish = createSteadyPublisher({ topics, organizations, shape: size, signal })
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
}

/** Milliseconds from publishing to the answer that has it, and to the last request whose answer had not. */
type Probe = { readonly seen: number; readonly notYet: number; readonly requests: number; readonly refused: number }
type Round = {
  readonly probes: readonly Probe[]
  readonly perSecond: number
  readonly cpu: Cpu
  readonly seconds: number
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
  { publish, ask, pids, died }: System,
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
  const cpu = watchCpu(pids)
  const began = performance.now()
  const perSecond = await Promise.race([publish(eventsPerSecond, seconds, onSent), died])
  const counted = { cpu: cpu(), seconds: (performance.now() - began) / 1000 }
  return { probes: await Promise.race([Promise.all(probes), died]), perSecond, ...counted }
}

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

/** The first table has the picture, and the notes about all. */
const figuresOf = (bench: Bench, ours: Measured, plain: Measured): Figure[] =>
  bench.sizes.freshness.rates.map((rate, index) => ({
    name: 'freshness',
    title: `Freshness at ${rate.eventsPerSecond.toLocaleString('en-US')} events/s`,
    rows: rowsOf(rate, ours.get(rate) ?? [], plain.get(rate) ?? []),
    notes: index === 0 ? notesOf(bench, ours) : [],
    ...(index === 0 && { pictures: [pictureOf(bench, ours, plain)] }),
  }))

const rowsOf = ({ eventsPerSecond }: FreshnessRate, ours: readonly Round[], plain: readonly Round[]): FigureRow[] => {
  const reach = targets[eventsPerSecond] ?? {}
  const ratio = timeOf(ours, 50).value / timeOf(plain, 50).value
  const refused = ours.flatMap(({ probes }) => probes).reduce((sum, probe) => sum + probe.refused, 0)
  return [
    { what: 'publish → visible, p50', unit: 'ms', ...timeOf(ours, 50), ...targetField(reach.p50) },
    { what: 'publish → visible, p99', unit: 'ms', ...timeOf(ours, 99), ...targetField(reach.p99) },
    { what: 'publish → visible, longest', unit: 'ms', ...timeOf(ours, 100) },
    { what: 'plain pipe with a refresh a second, p50', unit: 'ms', ...timeOf(plain, 50) },
    { what: 'plain pipe, p99', unit: 'ms', ...timeOf(plain, 99) },
    { what: 'plain pipe, longest', unit: 'ms', ...timeOf(plain, 100) },
    {
      what: 'p50 / the plain pipe’s p50',
      key: `p50 / the plain pipe’s p50 at ${eventsPerSecond} events/s`,
      unit: '',
      value: ratio,
      isRatio: true,
      ...targetField(reach.ratio),
    },
    { what: 'published', unit: 'events/s', ...spreadOf(ours.map(({ perSecond }) => perSecond)) },
    { what: 'answered with 503', unit: 'requests', value: refused },
    ...coresOf(ours),
  ]
}

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
  const { organizations, rounds, secondsPerRound, plainSecondsPerRound, rates, shape } = sizes.freshness
  const every = rates.map(({ eventsPerSecond, probeEvery }) => `one in ${probeEvery} at ${eventsPerSecond} events/s`)
  const all = [...ours.values()].flat().flatMap(({ probes }) => probes)
  const asked = all.reduce((sum, probe) => sum + probe.requests, 0) / all.length
  const unsure = all.map(({ seen, notYet }) => seen - notYet)
  return [
    `Payouts of ${shape.lines} lines and ${shape.steps} steps over ${organizations} organizations are sent to Kafka when they are due. One request has those due within ${LINGER_MS} ms. Every rate runs ${rounds} times ${secondsPerRound} s after a warm-up. The time runs from the request to Kafka until the answer with the record.`,
    `The probes are ${every.join(', ')}, ${all.length} in all. Each is requested by id from its acknowledgement on. After an answer without it, the next request follows ${POLL_MS} ms later, or after a tenth of its age: ${asked.toFixed(1)} requests each. Precision: half of them were still missing ${percentile(unsure, 50).toFixed(0)} ms before. Publisher and probes are one process on the same cores, the bench; the rows have its CPU.`,
    `The plain pipe is kafkajs and the official client's \`helpers.bulk\`. It writes one document an event into one index with the mappings of the payouts and \`refresh_interval: 1s\`, without refreshes of its own. It runs ${rounds} times ${plainSecondsPerRound} s at every rate, with the same publisher and probes. Projector and API have ended, so it has the machine to itself. A payout is visible when a search for its id, sent straight to Elasticsearch, finds it. A get by id would find it before the refresh.`,
  ]
}

const pictureOf = ({ sizes }: Bench, ours: Measured, plain: Measured): Picture => ({
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
