/** The figures of freshness: rows, picture and notes. */
import { LINGER_MS } from '../processes/constant-rate.ts'
import type { Bench, Figure, FigureRow, Picture } from '../rig/bench.ts'
import type { RequestCounts } from '../rig/elasticsearch.ts'
import type { FreshnessRate } from '../rig/sizes.ts'
import { percentile, type Spread, spreadOf } from '../rig/statistics.ts'
import type { Cpu } from '../rig/usage.ts'

/**
 * Milliseconds between two requests for one probe: a tenth of its age, and this long for each probe that waits. So all
 * probes together send at most 100 requests a second: with more, late answers made further ones later.
 */
export const PROBE_PAUSE_MS = 5
export const PROBE_PAUSE_SHARE = 0.1
export const SHARED_PAUSE_MS = 10
/** Targets by rate: p50 and p99 beside the bare loop's, CPU of Elasticsearch beside the bare loop's, milliseconds. */
type Targets = {
  readonly p50?: number
  readonly p99?: number
  readonly cpu?: number
  readonly p99Milliseconds?: number
}
const targets: Readonly<Record<string, Targets>> = {
  '200 events/s': { p50: 4, p99: 5, cpu: 1.5 },
  '1,000 events/s': { p50: 5, p99: 8 },
  '2,000 events/s': { p99Milliseconds: 500 },
  '200 payouts/s': { p50: 2.5, p99: 5, cpu: 1.5 },
  '1,000 payouts/s': { p50: 4, p99: 8 },
}
/** At each rate: publish → visible, as a multiple of the time from one refresh to the next. */
const CYCLES = { p50: 3, p99: 6 }

/** The plain pipe runs at these rates only, to save time. */
export const isComparedWithPipe = ({ stream, coreTaken }: FreshnessRate): boolean =>
  stream === undefined && coreTaken === undefined

/** Names a rate, as a title and in the keys of its ratios. */
export const nameOfRate = ({ eventsPerSecond, stream, coreTaken }: FreshnessRate): string =>
  `${eventsPerSecond.toLocaleString('en-US')} ${stream ?? 'events'}/s${coreTaken ? ', one core taken' : ''}`

/** Milliseconds from publishing to the answer that has it, and to the last request whose answer had not. */
export type Probe = {
  readonly seen: number
  readonly notYet: number
  readonly requests: number
  readonly refused: number
}
export type FreshnessRound = {
  readonly probes: readonly Probe[]
  readonly perSecond: number
  readonly cpu: Cpu
  readonly seconds: number
  /** At the end of the round. */
  readonly lag?: number | undefined
  readonly counts?: RequestCounts | undefined
}
export type Measured = ReadonlyMap<FreshnessRate, readonly FreshnessRound[]>

export const timesOf = (probes: readonly Probe[]): number[] => probes.map(({ seen }) => seen)

export type Bare = {
  readonly times: readonly number[]
  readonly stepsPerSecond: number
  readonly cpu: Cpu
  readonly seconds: number
}

/** The cost of processes and requests while nothing is published. */
export type Idle = { readonly seconds: number; readonly cpu: Cpu; readonly controlWrites: number }

type All = {
  readonly ours: Measured
  readonly bare: ReadonlyMap<FreshnessRate, Bare>
  readonly plain: Measured
}

/** The first table has the picture, and the notes about all. */
export const figuresOf = (bench: Bench, all: All): Figure[] =>
  bench.sizes.freshness.rates.map((rate, index) => ({
    name: 'freshness',
    title: `Freshness at ${nameOfRate(rate)}`,
    rows: rowsOf(rate, all),
    notes: index === 0 ? notesOf(bench, all.ours) : [],
    ...(index === 0 && { pictures: [pictureOf(bench, all), cpuPictureOf(bench, all)] }),
  }))

const rowsOf = (rate: FreshnessRate, all: All): FigureRow[] => {
  const [ours = [], plain = [], bare] = [all.ours.get(rate), all.plain.get(rate), all.bare.get(rate)]
  const to = targets[nameOfRate(rate)] ?? {}
  const refused = ours.flatMap(({ probes }) => probes).reduce((sum, probe) => sum + probe.refused, 0)
  const ratio = (what: string, value: number, target: number | undefined): FigureRow => ({
    what,
    key: `${what} at ${nameOfRate(rate)}`,
    unit: '',
    value,
    isRatio: true,
    ...targetField(target),
  })
  const bareTime = (percent: number): number => percentile(bare?.times ?? [], percent)
  const oursCores = coresOf(ours, 'Elasticsearch').value
  const cycle = 1_000 / perSecondOf(ours, 'refreshes').value
  return [
    { what: 'publish → visible, p50', unit: 'ms', ...spreadAt(ours, 50) },
    { what: 'publish → visible, p99', unit: 'ms', ...spreadAt(ours, 99), ...targetField(to.p99Milliseconds) },
    { what: 'publish → visible, longest', unit: 'ms', ...spreadAt(ours, 100) },
    { what: 'bare loop, bulk and refresh, p50', unit: 'ms', value: bareTime(50) },
    { what: 'bare loop, p99', unit: 'ms', value: bareTime(99) },
    { what: 'bare loop, steps', unit: '/s', value: bare?.stepsPerSecond ?? Number.NaN },
    { what: 'from one refresh to the next', unit: 'ms', value: cycle },
    ...pipeRows(plain),
    ratio('p50 / the bare loop’s p50', spreadAt(ours, 50).value / bareTime(50), to.p50),
    ratio('p99 / the bare loop’s p99', spreadAt(ours, 99).value / bareTime(99), to.p99),
    ratio('p50 / from one refresh to the next', spreadAt(ours, 50).value / cycle, CYCLES.p50),
    ratio('p99 / from one refresh to the next', spreadAt(ours, 99).value / cycle, CYCLES.p99),
    ...(plain.length === 0
      ? []
      : [ratio('p50 / the plain pipe’s p50', spreadAt(ours, 50).value / spreadAt(plain, 50).value, undefined)]),
    // In Docker and elsewhere than on Linux, the CPU of Elasticsearch is not known.
    ...(bare?.cpu.Elasticsearch === undefined
      ? []
      : [ratio('CPU of Elasticsearch / the bare loop’s', oursCores / bareCores(bare), to.cpu)]),
    { what: 'published', unit: 'events/s', ...spreadOf(ours.map(({ perSecond }) => perSecond)) },
    { what: 'not visible at the end of a round', unit: 'records', ...spreadOf(ours.map(({ lag = 0 }) => lag)) },
    { what: 'refreshes of payouts', unit: '/s', ...perSecondOf(ours, 'refreshes') },
    { what: 'writes of positions and times', unit: '/s', ...perSecondOf(ours, 'controlWrites') },
    { what: 'chains read back', unit: '/s', ...perSecondOf(ours, 'chainsRead') },
    { what: 'of these, do not exist', unit: '/s', ...perSecondOf(ours, 'chainsMissing') },
    { what: 'answered with 503', unit: 'requests', value: refused },
    ...coreRows(ours),
  ]
}

const pipeRows = (rounds: readonly FreshnessRound[]): FigureRow[] => {
  if (rounds.length === 0) return []
  return [
    { what: 'plain pipe with a refresh a second, p50', unit: 'ms', ...spreadAt(rounds, 50) },
    { what: 'plain pipe, p99', unit: 'ms', ...spreadAt(rounds, 99) },
    { what: 'plain pipe, longest', unit: 'ms', ...spreadAt(rounds, 100) },
  ]
}

export const perSecondOf = (rounds: readonly FreshnessRound[], name: keyof RequestCounts): Spread =>
  spreadOf(rounds.map(({ counts, seconds }) => (counts?.[name] ?? 0) / seconds))

export const idleFigure = (bench: Bench, { seconds, cpu, controlWrites }: Idle): Figure => ({
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
export const spreadAt = (rounds: readonly FreshnessRound[], percent: number): Spread =>
  spreadOf(rounds.map(({ probes }) => percentile(timesOf(probes), percent)))

const targetField = (target: number | undefined) => (target === undefined ? {} : { atMost: target })

/** Cores that each process used. */
const coreRows = (rounds: readonly FreshnessRound[]): FigureRow[] =>
  Object.keys(rounds[0]?.cpu ?? {}).flatMap(name => coreRow(`CPU of ${name}`, rounds, name))

/** A row of the cores that a process used; none if its CPU is not known. */
export const coreRow = (what: string, rounds: readonly FreshnessRound[], name: string): FigureRow[] =>
  rounds.some(({ cpu }) => cpu[name] !== undefined) ? [{ what, unit: 'cores', ...coresOf(rounds, name) }] : []

export const coresOf = (rounds: readonly FreshnessRound[], name: string): Spread =>
  spreadOf(rounds.flatMap(({ cpu, seconds }) => (cpu[name] === undefined ? [] : [cpu[name] / seconds])))

const bareCores = ({ cpu, seconds }: Bare): number => (cpu.Elasticsearch ?? Number.NaN) / seconds

const notesOf = ({ sizes }: Bench, ours: Measured): string[] => {
  const { organizations, rounds, secondsPerRound, plainSecondsPerRound, bareSeconds, rates, shape, recalculated } =
    sizes.freshness
  const every = rates.map(rate => `one in ${rate.probeEvery} at ${nameOfRate(rate)}`)
  const all = [...ours.values()].flat().flatMap(({ probes }) => probes)
  const asked = all.reduce((sum, probe) => sum + probe.requests, 0) / all.length
  const unsure = all.map(({ seen, notYet }) => seen - notYet)
  return [
    [
      'Events are 90 % payouts, 4 % versions of reps, 4 % payments and 2 % versions of periods; or payouts alone.',
      `Payouts of ${shape.lines} lines and ${shape.steps} steps over ${organizations} organizations,`,
      `${100 * recalculated} % of which replace another one, are sent to Kafka when they are due.`,
      'With one core taken, another process computes all the time on one of the cores.',
      `One request has those due within ${LINGER_MS} ms.`,
      `Every rate runs ${rounds} times ${secondsPerRound} s after a warm-up.`,
      'The time runs from the request to Kafka until the answer with the record.',
    ].join(' '),
    [
      `The probes are ${every.join(', ')}, ${all.length} in all.`,
      'Each is requested by id from its acknowledgement on.',
      `After an answer without it, the next request follows ${PROBE_PAUSE_MS} ms later,`,
      `or after a tenth of its age: ${asked.toFixed(1)} requests each, of all at most ${1000 / SHARED_PAUSE_MS} a second.`,
      `Precision: half of them were still missing ${percentile(unsure, 50).toFixed(0)} ms before.`,
      'Publisher and probes are one process on the same cores, the bench; the rows have its CPU.',
      'The compilers of the JVMs have a row of their own.',
    ].join(' '),
    [
      'The bare loop has the documents of such events, recorded once.',
      'It writes those of a step in one bulk request, then refreshes the lists;',
      `as many steps a second as the projector made refreshes, ${bareSeconds} s at every rate.`,
      'It decides nothing, reads nothing and publishes no position.',
      'Its time runs from the bulk request to the end of the refresh.',
    ].join(' '),
    [
      `The plain pipe is kafkajs and the official client's \`helpers.bulk\`.`,
      'It writes one document an event into one index with the mappings of the payouts and `refresh_interval:',
      '1s`, without refreshes of its own.',
      `It runs ${rounds} times ${plainSecondsPerRound} s at every rate of all events, with the same publisher and probes.`,
      'Projector and API have ended, so it has the machine to itself.',
      'A payout is visible when a search for its id, sent straight to Elasticsearch, finds it.',
      'A get by id would find it before the refresh.',
    ].join(' '),
  ]
}

const pictureOf = ({ sizes }: Bench, { ours, plain }: All): Picture => ({
  name: 'freshness',
  title: 'Publish → visible',
  unit: 'ms',
  bars: sizes.freshness.rates.flatMap(rate =>
    [
      { name: 'p50', spread: spreadAt(ours.get(rate) ?? [], 50) },
      { name: 'p99', spread: spreadAt(ours.get(rate) ?? [], 99) },
      ...(isComparedWithPipe(rate) ? [{ name: 'plain pipe, p50', spread: spreadAt(plain.get(rate) ?? [], 50) }] : []),
    ].map(({ name, spread }) => ({ name: `${nameOfRate(rate)}: ${name}`, ...spread })),
  ),
})

const cpuPictureOf = ({ sizes }: Bench, { ours, bare }: All): Picture => ({
  name: 'freshness-cpu',
  title: 'CPU while payouts are replaced',
  unit: 'cores',
  bars: sizes.freshness.rates.flatMap(rate => {
    const [rounds = [], loop] = [ours.get(rate), bare.get(rate)]
    return [
      { name: 'Elasticsearch', spread: coresOf(rounds, 'Elasticsearch') },
      { name: 'Elasticsearch under the bare loop', spread: { value: loop === undefined ? 0 : bareCores(loop) } },
      { name: 'projector', spread: coresOf(rounds, 'the projector') },
    ]
      .filter(({ spread }) => Number.isFinite(spread.value))
      .map(({ name, spread }) => ({ name: `${nameOfRate(rate)}: ${name}`, ...spread }))
  }),
})
