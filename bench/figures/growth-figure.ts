/** The figure of growing data: rows, pictures and notes. */
import type { Bar, Figure, FigureRow, Picture } from '../rig/bench.ts'
import type { DatasetSize } from '../rig/dataset.ts'
import type { Sizes } from '../rig/sizes.ts'
import { percentile, spreadOf } from '../rig/statistics.ts'
import { PAGE, type PageTimes, type Walk } from './pages.ts'
import { MEMORY_MAX } from './replay-figure.ts'

/** A sample: seconds after which this many payouts were decided. */
export type Growth = {
  readonly payouts: number
  readonly seconds: number
  readonly mebibytes: number | undefined
}

export type Stage = {
  readonly payouts: number
  readonly growth: readonly Growth[]
  readonly peakMebibytes: number | undefined
  readonly diskBytes: number
  readonly walk: Walk
  /** Milliseconds of each probe. */
  readonly seen: readonly number[]
  readonly restartSeconds: readonly number[]
}

export type Chains = readonly { readonly length: number; readonly seconds: readonly number[] }[]

/** Compares the first and the last of PARTS parts of the largest size. */
const PARTS = 10
const RATE_RATIO_MIN = 0.85
const REP_RATIO_MAX = 1.5
const PAGE_RATIO_MAX = 1.3
const RESTART_SECONDS_MAX = 3
/** Growth of memory that counts as flat: uncollected garbage varies as much. */
const MEMORY_RATIO_MAX = 1.15

/** Returns the tables and pictures of the measured sizes. */
export const figureOfGrowth = (sizes: Sizes['growth'], stages: readonly Stage[]): Figure => {
  const largest = stages.at(-1)
  if (largest === undefined) throw new Error('nothing was measured')
  const step = largest.payouts / PARTS
  const parts = partsOf(largest.growth, step)
  const [first, last] = [parts[0], parts.at(-1)]
  if (first === undefined || last === undefined) throw new Error('a projection ended before its first sample')
  const part = step.toLocaleString('en-US')
  const all = largest.payouts.toLocaleString('en-US')
  return {
    name: 'growth',
    title: `Growth: to ${all} payouts of one organization`,
    rows: [
      { what: `replay, first ${part}`, unit: 'payout events/s', value: first.rate },
      { what: `replay, last ${part} of ${all}`, unit: 'payout events/s', value: last.rate },
      {
        key: 'last part / first part',
        what: `last ${part} / first ${part}`,
        unit: '',
        value: last.rate / first.rate,
        isRatio: true,
        atLeast: RATE_RATIO_MIN,
      },
      ...memoryRows(largest, parts, part, all),
      {
        what: `restart with ${all} projected: start of the process → first record applied`,
        unit: 's',
        ...spreadOf(largest.restartSeconds),
        atMost: RESTART_SECONDS_MAX,
      },
      ...stages.flatMap(stage => stageRows(stage, stage === largest)),
    ],
    notes: [
      [
        `${stages.map(({ payouts }) => payouts.toLocaleString('en-US')).join(', ')} payout events`,
        `of ${sizes.shape.lines} lines and ${sizes.shape.steps} steps,`,
        `${100 * sizes.recalculated} % of them recalculations.`,
        'All are of one organization, in one partition: its order allows less parallel work than six partitions.',
        'Each size is projected once, into empty indices.',
        'Progress is what the projector reports as decided;',
        'the rate of a whole size runs until all of it is visible.',
      ].join(' '),
      [
        `A page has ${PAGE} records and uses one connection.`,
        'After a whole walk, up to 20 pages from its beginning, middle and end are requested in turn,',
        `for ${sizes.pages.secondsPerRound} s each in every round.`,
        `The time until visible is that of ${sizes.probes} payouts,`,
        'published one after the other and requested by id from their acknowledgement on.',
      ].join(' '),
      [
        'Memory is the resident memory (RSS) when each part is published.',
        'Restarts find 200 unread records, and the first of them must become searchable.',
        'Bytes on disk are those of all indices right after the projection, before all merges.',
      ].join(' '),
    ],
    pictures: [...progressPictures(parts), pagePicture(stages)],
  }
}

type Part = { readonly payouts: number; readonly rate: number; readonly mebibytes: number | undefined }

/** Rate of every part, and memory at its end. Interpolates where a part ends between two samples. */
const partsOf = (growth: readonly Growth[], step: number): Part[] => {
  const reached = (payouts: number): Growth | undefined => {
    const index = growth.findIndex(sample => sample.payouts >= payouts)
    const [before, after] = [growth[index - 1], growth[index]]
    if (before === undefined || after === undefined) return after
    const share = (payouts - before.payouts) / (after.payouts - before.payouts)
    return { ...after, seconds: before.seconds + share * (after.seconds - before.seconds) }
  }
  return Array.from({ length: PARTS }, (_, index) => (index + 1) * step).flatMap(payouts => {
    const [from, to] = [reached(payouts - step), reached(payouts)]
    if (from === undefined || to === undefined) return []
    return [{ payouts, rate: step / (to.seconds - from.seconds), mebibytes: to.mebibytes }]
  })
}

const memoryRows = (largest: Stage, parts: readonly Part[], part: string, all: string): FigureRow[] => {
  const [first, last, peak] = [parts[0]?.mebibytes, parts.at(-1)?.mebibytes, largest.peakMebibytes]
  if (first === undefined || last === undefined || peak === undefined) return []
  return [
    { what: `memory of the projector after the first ${part}`, unit: 'MiB', value: first },
    { what: `memory of the projector after ${all}`, unit: 'MiB', value: last },
    {
      key: 'memory at the end / after the first part',
      what: `memory after ${all} / after the first ${part}`,
      unit: '',
      value: last / first,
      isRatio: true,
      atMost: MEMORY_RATIO_MAX,
    },
    { what: 'peak memory of the projector', unit: 'MiB', value: peak, atMost: MEMORY_MAX },
  ]
}

const stageRows = ({ payouts, growth, diskBytes, walk, seen }: Stage, isLargest: boolean): FigureRow[] => {
  const size = payouts.toLocaleString('en-US')
  const of = (pick: (round: PageTimes) => number) => spreadOf(walk.rounds.map(pick))
  const begun = growth.findLast(sample => sample.payouts <= 0)?.seconds ?? 0
  const done = growth.at(-1)?.seconds ?? Number.NaN
  return [
    { what: `${size}: replay`, unit: 'payout events/s', value: payouts / (done - begun) },
    { what: `${size}: on disk`, unit: 'bytes a payout', value: diskBytes / payouts },
    { what: `${size}: whole walk`, unit: `pages of ${PAGE}/s`, value: walk.pages / walk.seconds },
    { what: `${size}: page at the beginning`, unit: 'ms', ...of(({ beginning }) => beginning) },
    { what: `${size}: page in the middle`, unit: 'ms', ...of(({ middle }) => middle) },
    { what: `${size}: page at the end`, unit: 'ms', ...of(({ end }) => end) },
    {
      key: isLargest ? 'page at the end / at the beginning' : `${size}: page at the end / at the beginning`,
      what: `${size}: page at the end / at the beginning`,
      unit: '',
      ...of(({ beginning, end }) => end / beginning),
      isRatio: true,
      ...(isLargest && { atMost: PAGE_RATIO_MAX }),
    },
    { what: `${size}: page of one rep`, unit: 'ms', ...of(({ ofRep }) => ofRep) },
    {
      key: isLargest ? 'page of one rep / page of as many records' : `${size}: page of one rep / as many records`,
      what: `${size}: page of one rep / page of as many records`,
      unit: '',
      ...of(({ ofRep, asMany }) => ofRep / asMany),
      isRatio: true,
      ...(isLargest && { atMost: REP_RATIO_MAX }),
    },
    { what: `${size}: publish → visible, p50`, unit: 'ms', value: percentile(seen, 50) },
  ]
}

const progressPictures = (parts: readonly Part[]): Picture[] => {
  const x = { title: 'payouts projected' }
  const memory = parts.flatMap(({ payouts, mebibytes }) =>
    mebibytes === undefined ? [] : [[payouts, mebibytes] as const],
  )
  return [
    {
      name: 'growth-rate',
      title: 'Replay as the data grows',
      unit: 'payout events/s',
      x,
      lines: [{ name: 'projector', points: parts.map(({ payouts, rate }) => [payouts, rate] as const) }],
    },
    ...(memory.length === 0
      ? []
      : [
          {
            name: 'growth-memory',
            title: 'Memory of the projector as the data grows',
            unit: 'MiB',
            x,
            lines: [{ name: 'projector', points: memory }],
          },
        ]),
  ]
}

const pagePicture = (stages: readonly Stage[]): Picture => ({
  name: 'growth-pages',
  title: `A page of ${PAGE} as the data grows`,
  unit: 'ms',
  x: { title: 'payouts of the organization', isLog: true },
  lines: (['beginning', 'middle', 'end'] as const).map(name => ({
    name,
    points: stages.map(
      ({ payouts, walk }) =>
        [
          payouts,
          percentile(
            walk.rounds.map(round => round[name]),
            50,
          ),
        ] as const,
    ),
  })),
})

/** Returns the table and picture of the measured chain lengths. */
export const figureOfChains = ({ payouts, organizations }: DatasetSize, chains: Chains): Figure => {
  const [shortest] = chains
  const bars: Bar[] = chains.map(({ length, seconds }) => ({
    name: `chains of ${length}`,
    ...spreadOf(seconds.map(taken => payouts / taken)),
  }))
  return {
    name: 'growth',
    title: 'Growth: longer chains',
    rows: [
      ...bars.map(({ name, ...rates }): FigureRow => ({ what: `replay, ${name}`, unit: 'payout events/s', ...rates })),
      ...chains.slice(1).map(
        ({ length, seconds }): FigureRow => ({
          what: `chains of ${length} / of ${shortest?.length}`,
          unit: '',
          ...spreadOf(seconds.map((taken, round) => (shortest?.seconds[round] ?? Number.NaN) / taken)),
          isRatio: true,
        }),
      ),
    ],
    notes: [
      [
        `Each time, ${payouts} payout events of ${organizations} organizations, of as many reps and periods.`,
        'The payouts of one rep and period are a chain: each replaces the one before,',
        'and writes the document of the chain again.',
      ].join(' '),
    ],
    pictures: [{ name: 'growth-chains', title: 'Replay of longer chains', unit: 'payout events/s', bars }],
  }
}
