/** The figure of a replay: rows, picture and notes. */
import { BULKS_IN_FLIGHT } from '../../core/projection/index.ts'
import type { Piped } from '../peers.ts'
import type { BulkRequests } from '../processes/ceiling.ts'
import { POSITIONS_INTERVAL_MS, type RunningProjection } from '../processes/projection.ts'
import type { Topics } from '../processes/publish.ts'
import type { Bar, Figure, FigureRow } from '../rig/bench.ts'
import type { DatasetSize } from '../rig/dataset.ts'
import { percentile, type Spread, spreadOf } from '../rig/statistics.ts'
import { type Cpu, EVERYTHING_ELSE } from '../rig/usage.ts'

/** Targets: shares of the ceiling and of the fastest plain pipe. */
const OF_CEILING = 0.85
const OF_PIPES = 1.2
/** MiB of the projector. */
export const MEMORY_MAX = 400

/** A topic, and the bulk requests of its projection. */
export type Mix = {
  readonly topics: Topics
  readonly payouts: number
  /** Reps and periods. */
  readonly others: number
  readonly bulks: BulkRequests
  [Symbol.asyncDispose](): Promise<void>
}

export type Ceiling = { readonly seconds: number; readonly cpu: Cpu }
export type CeilingPair = { readonly ceiling: Ceiling; readonly projection: Omit<RunningProjection, 'projector'> }
/** Pipes by name. */
export type Round = CeilingPair & { readonly pipes: Readonly<Record<string, Piped>> }

/** Returns the table and picture of the measured rounds. */
export const figureOfReplay = (data: DatasetSize, { bulks, others }: Mix, rounds: readonly Round[]): Figure => {
  const { payouts, lines, steps, organizations, recalculated } = data
  const records = payouts + others
  const projected = rounds.map(({ projection }) => (projection.documents.written ?? 0) / projection.seconds)
  const ceiling = rounds.map(round => bulks.documents / round.ceiling.seconds)
  const names = Object.keys(rounds[0]?.pipes ?? {})
  const piped = (name: string): number[] => rounds.flatMap(({ pipes }) => rateOf(pipes[name]?.seconds, records))
  const ofPipes = rounds.flatMap((round, index) => {
    const rates = Object.values(round.pipes).map(({ seconds }) => records / seconds)
    return rates.length === 0 ? [] : [(projected[index] ?? Number.NaN) / Math.max(...rates)]
  })
  return {
    name: 'replay',
    title: 'Replay: an existing topic into empty indices, until all is visible',
    rows: [
      ...ratesOf(payouts, rounds),
      { ...ratioRow('projector / ceiling', rounds), atLeast: OF_CEILING },
      { what: 'projector', unit: 'documents/s', ...spreadOf(projected) },
      { what: 'bulk ceiling', unit: 'documents/s', ...spreadOf(ceiling) },
      ...names.map((name): FigureRow => ({ what: name, unit: 'documents/s', ...spreadOf(piped(name)) })),
      ...optional('projector / the fastest plain pipe, documents/s', '', ofPipes).map(
        (row): FigureRow => ({ ...row, isRatio: true, atLeast: OF_PIPES }),
      ),
      ...optional(
        'projector / the fastest plain pipe, events/s: a third of the documents',
        '',
        ofPipes.map(ratio => (ratio * records) / bulks.documents),
      ).map((row): FigureRow => ({ ...row, isRatio: true })),
      ...cpuRows(rounds, payouts, names),
      ...optional('CPU of everything else meanwhile', 'cores', rounds.flatMap(coresElsewhere)),
      ...optional(
        'peak memory of the projector',
        'MiB',
        rounds.flatMap(({ projection }) => projection.peakMebibytes ?? []),
      ).map((row): FigureRow => ({ ...row, atMost: MEMORY_MAX })),
      ...names.flatMap(name =>
        optional(
          `peak memory of ${name}`,
          'MiB',
          rounds.flatMap(({ pipes }) => pipes[name]?.peakMebibytes ?? []),
        ),
      ),
    ],
    notes: [
      [
        `${payouts} payout events of ${lines} lines and ${steps} steps,`,
        `${100 * recalculated} % of them recalculations, of ${organizations} organizations in 6 partitions.`,
        `The ${others} reps and periods before them take time, and are not counted as events.`,
      ].join(' '),
      [
        'The projector is measured from its log line "projecting" until the published position of every partition',
        `is its end, checked every ${POSITIONS_INTERVAL_MS} ms.`,
        'Each round has a new process, empty indices and a new consumer group.',
      ].join(' '),
      [
        `The ceiling sends the bulk requests of one projection again: ${bulks.documents} documents,`,
        `${(bulks.bytes / 1e6).toFixed(0)} MB of bulk bodies. They were recorded in a round that was not measured.`,
        `They go to fresh indices with the same mappings, ${BULKS_IN_FLIGHT} requests in flight,`,
        'with one refresh at the end. Rounds alternate; ratios compare neighbouring rounds.',
      ].join(' '),
      [
        'The plain pipes read the same topic from its start.',
        'They make one document of each record, with the whole event, under the id of the record.',
        'The index has the mappings of the payouts. They refresh once, at the end.',
        'They decide nothing, keep no chain and no trace, and lose refused records.',
      ].join(' '),
      'CPU: milliseconds per event are seconds per 1,000 events.',
      ...boundNote(rounds, payouts),
    ],
    pictures: [
      {
        name: 'replay',
        title: 'Replay: documents a second',
        unit: 'documents/s',
        bars: [bar('bulk ceiling', ceiling), bar('projector', projected), ...names.map(name => bar(name, piped(name)))],
      },
    ],
  }
}

/** Projector and ceiling only, under other conditions. @param key identifies the ratio */
export const figureOfPairs = (
  title: string,
  key: string,
  { payouts }: DatasetSize,
  pairs: readonly CeilingPair[],
  notes: readonly string[],
): Figure => ({
  name: 'replay',
  title,
  rows: [
    ...ratesOf(payouts, pairs),
    { ...ratioRow('projector / ceiling', pairs), key: `projector / ceiling, ${key}`, atLeast: OF_CEILING },
    ...cpuRows(pairs, payouts, []),
    ...optional('CPU of everything else meanwhile', 'cores', pairs.flatMap(coresElsewhere)),
  ],
  notes,
})

const ratesOf = (payouts: number, pairs: readonly CeilingPair[]): FigureRow[] => [
  {
    what: 'projector',
    unit: 'payout events/s',
    ...spreadOf(pairs.map(({ projection }) => payouts / projection.seconds)),
  },
  {
    what: 'bulk ceiling',
    unit: 'payout events/s',
    ...spreadOf(pairs.map(({ ceiling }) => payouts / ceiling.seconds)),
  },
]

const ratioRow = (what: string, pairs: readonly CeilingPair[]): FigureRow => ({
  what,
  unit: '',
  ...spreadOf(pairs.map(({ ceiling, projection }) => ceiling.seconds / projection.seconds)),
  isRatio: true,
})

/** CPU of every process, by its work. */
const cpuRows = (
  rounds: readonly (CeilingPair & Partial<Round>)[],
  payouts: number,
  pipes: readonly string[],
): FigureRow[] => {
  const row = (process: string, doing: string, of: readonly (Cpu | undefined)[]): FigureRow[] =>
    optional(`CPU of ${process}, ${doing}`, 'ms per event', perEvent(of, process, payouts))
  const servers = ['Elasticsearch', 'Kafka']
  const projections = rounds.map(({ projection }) => projection.cpu)
  const ceilings = rounds.map(({ ceiling }) => ceiling.cpu)
  return [
    ...['the projector', ...servers].flatMap(process => row(process, 'projecting', projections)),
    ...row('Elasticsearch', 'ceiling', ceilings),
    ...optional('CPU of the loop, ceiling', 'ms per event', perEvent(ceilings, 'bench', payouts)),
    ...pipes.flatMap(name => {
      const cpu = rounds.map(round => round.pipes?.[name]?.cpu)
      return [
        ...optional(`CPU of ${name}`, 'ms per event', perEvent(cpu, name, payouts)),
        ...servers.flatMap(process => row(process, name, cpu)),
      ]
    }),
  ]
}

/** Milliseconds. */
const perEvent = (all: readonly (Cpu | undefined)[], process: string, payouts: number): number[] =>
  all.map(cpu => (1_000 * (cpu?.[process] ?? Number.NaN)) / payouts).filter(Number.isFinite)

/** The highest possible share of the ceiling if the cores are shared. */
const boundNote = (pairs: readonly CeilingPair[], payouts: number): string[] => {
  const of = (all: readonly Cpu[], process: string): number => percentile(perEvent(all, process, payouts), 50)
  const projections = pairs.map(({ projection }) => projection.cpu)
  const ceilings = pairs.map(({ ceiling }) => ceiling.cpu)
  const [ceilingElasticsearch, ceilingLoop] = [of(ceilings, 'Elasticsearch'), of(ceilings, 'bench')]
  const [elasticsearch, projector, kafka] = [
    of(projections, 'Elasticsearch'),
    of(projections, 'the projector'),
    of(projections, 'Kafka'),
  ]
  const all = elasticsearch + projector + kafka
  if (Number.isNaN(all + ceilingElasticsearch + ceilingLoop)) return []
  const sum = [elasticsearch, projector, kafka].map(cpu => cpu.toFixed(3)).join(' + ')
  return [
    [
      'The ceiling’s loop needs little CPU and leaves all cores to Elasticsearch.',
      'The projector and Kafka work on the same cores.',
      'E, N and K are the CPU of an event in Elasticsearch, the projector and Kafka.',
      `With all cores busy, projector / ceiling is at most E / (E + N + K) = ${elasticsearch.toFixed(3)} / (${sum})`,
      `= ${(elasticsearch / all).toFixed(2)}.`,
      'With the CPU that Elasticsearch and the loop use for the ceiling,',
      `it is (${ceilingElasticsearch.toFixed(3)} + ${ceilingLoop.toFixed(3)}) / ${all.toFixed(3)} =`,
      `${((ceilingElasticsearch + ceilingLoop) / all).toFixed(2)}.`,
      'On a core of its own, below, the projector takes nothing from Elasticsearch.',
      'Kafka does, and so does the work that the ceiling does not need: realtime reads of replaced documents,',
      'refreshes, positions.',
    ].join(' '),
  ]
}

/** Cores that other processes used during a projection. */
export const coresElsewhere = ({ projection: { cpu, seconds } }: CeilingPair): number[] => {
  const used = cpu[EVERYTHING_ELSE]
  return used === undefined ? [] : [used / seconds]
}

const rateOf = (seconds: number | undefined, records: number): number[] =>
  seconds === undefined ? [] : [records / seconds]

const optional = (what: string, unit: string, values: readonly number[]): FigureRow[] =>
  values.length === 0 ? [] : [{ what, unit, ...spreadOf(values) }]

const bar = (name: string, values: readonly number[]): Bar & Spread => ({ name, ...spreadOf(values) })
