/** The figure of a copy: rows and notes. */
import { ORGANIZATIONS_READ, type PageCost, pageLimits } from '../../processes/page-cost.ts'
import type { Figure, FigureRow } from '../../rig/bench.ts'
import type { Sizes } from '../../rig/sizes.ts'
import { type Spread, spreadOf } from '../../rig/statistics.ts'
import type { Cpu } from '../../rig/usage.ts'

/** Milliseconds of CPU by process, for each event. Processes that cannot be seen are missing. */
type CpuOfEach = Readonly<Record<string, number>>

export type CopyRound = {
  readonly pages: ReadonlyMap<number, PageCost>
  /** Milliseconds from publishing to the answer that has it, at a steady rate. */
  readonly p50: number
  readonly p99: number
  readonly event: CpuOfEach
  /** Records a second, and their CPU. */
  readonly replay: number
  readonly replayed: CpuOfEach
}
export type CopyRounds = { readonly one: CopyRound[]; readonly three: CopyRound[] }

/**
 * Targets beside one node: a copy costs as much as the primary, and a page asks one copy. Times have none: three nodes
 * share the cores that one node has alone.
 */
const EVENT_AT_MOST = 2
const PAGE_AT_MOST = 1.2

export const cpuOfEach = (cpu: Cpu, count: number): CpuOfEach =>
  Object.fromEntries(Object.entries(cpu).map(([name, seconds]) => [name, (1000 * seconds) / count]))

export const copyFigure = (sizes: Sizes['nodes'], { one, three }: CopyRounds): Figure => {
  const { shards, data, rate, rateSeconds, rounds } = sizes
  const rows: FigureRow[] = []
  const compare = (what: string, unit: string, pick: (round: CopyRound) => number, atMost?: number): void => {
    const spread = (of: readonly CopyRound[]): Spread => spreadOf(of.map(pick))
    const [alone, copied] = [spread(one), spread(three)]
    // In Docker and elsewhere than on Linux, the CPU of servers is not known.
    if (Number.isNaN(alone.value + copied.value)) return
    rows.push(
      { what: `${what}, one of each`, unit, ...alone },
      { what: `${what}, three of each`, unit, ...copied },
      {
        what: `${what}, three / one`,
        unit: '',
        ...spreadOf(three.map((round, at) => pick(round) / pick(one[at] ?? round))),
        isRatio: true,
        ...(atMost !== undefined && { atMost }),
      },
    )
  }
  const eventsPerSecond = `${rate.eventsPerSecond} events/s`
  compare(`${eventsPerSecond}: publish → visible, p50`, 'ms', ({ p50 }) => p50)
  compare(`${eventsPerSecond}: publish → visible, p99`, 'ms', ({ p99 }) => p99)
  const cpu = (name: string, of: CpuOfEach): number => of[name] ?? Number.NaN
  const names = [
    ['Elasticsearch', EVENT_AT_MOST],
    ['Kafka', undefined],
    ['the projector', undefined],
  ] as const
  for (const [name, atMost] of names) {
    compare(`${eventsPerSecond}: CPU of ${name} for each event`, 'ms', ({ event }) => cpu(name, event), atMost)
  }
  for (const limit of pageLimits) {
    const of = ({ pages }: CopyRound): PageCost => pages.get(limit) ?? { p50: Number.NaN, cpu: Number.NaN }
    compare(`page of ${limit}, p50`, 'ms', round => of(round).p50)
    compare(`page of ${limit}: CPU of Elasticsearch for each`, 'ms', round => of(round).cpu, PAGE_AT_MOST)
  }
  compare('replay', 'records/s', ({ replay }) => replay)
  for (const [name, atMost] of names) {
    compare(`replay: CPU of ${name} for each record`, 'ms', ({ replayed }) => cpu(name, replayed), atMost)
  }
  return {
    name: 'nodes',
    title: `Three brokers and three nodes of Elasticsearch, and one of each, ${shards} shards`,
    rows,
    notes: [
      [
        'One node has no replicas; on three nodes each shard has one, and each partition of Kafka is on three brokers.',
        'All run at the same time on the same cores, so times and rates are those of a machine that is full sooner;',
        'the CPU for each event and for each page is what a copy costs.',
        `${data.payouts} payout events of ${data.lines} lines and ${data.steps} steps, of ${data.organizations} organizations;`,
        `then ${rounds} rounds, in turn: pages of ${ORGANIZATIONS_READ} of them through the API, on one connection,`,
        `${eventsPerSecond} of all kinds for ${rateSeconds} s, and a replay of everything into empty indices.`,
        'A ratio compares the same round of both. The CPU of compilers of the JVMs is not counted;',
        'these JVMs compile fast and optimize less (TieredStopAtLevel=1), so that both are warm.',
      ].join(' '),
    ],
  }
}
