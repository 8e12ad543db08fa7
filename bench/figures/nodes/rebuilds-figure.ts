/** The figure of rebuilds at once: rows and notes. */
import type { Figure, FigureRow } from '../../rig/bench.ts'
import type { Sizes } from '../../rig/sizes.ts'

type AtOnce = {
  /** Of all processes. */
  readonly perSecond: number
  /** Cores by process. */
  readonly cores: Readonly<Record<string, number>>
}
export type RebuildsMeasured = { readonly count: number; readonly groups: AtOnce; readonly together: AtOnce }

/** Target: the sum, as a share of the limits. */
const OF_LIMITS = 0.9

export const rebuildsFigure = (
  { data, maxRate, seconds }: Sizes['nodes']['rebuilds'],
  measured: readonly RebuildsMeasured[],
): Figure => ({
  name: 'nodes',
  title: `Rebuilds at once, each with --max-rate ${maxRate}`,
  rows: measured.flatMap(({ count, groups, together }) => [
    ...rowsOf(`${count} groups, a process each`, count * maxRate, groups),
    ...rowsOf(`${count} processes for one generation`, count * maxRate, together),
  ]),
  notes: [
    [
      `${data.payouts} payout events of ${data.lines} lines and ${data.steps} steps are the topic of all groups.`,
      'A group has its own index prefix, on the same node of Elasticsearch and the same broker.',
      'The processes for one generation share its partitions.',
      `The rate is that of ${seconds} s in which all of them project.`,
      'A limit stands for a machine that each process would have alone: without it, two of them fill these cores.',
    ].join(' '),
  ],
})

const rowsOf = (what: string, limits: number, { perSecond, cores }: AtOnce): FigureRow[] => [
  { what: `${what}: sum`, unit: 'records/s', value: perSecond },
  { what: `${what}: sum / limits`, unit: '', value: perSecond / limits, isRatio: true, atLeast: OF_LIMITS },
  ...Object.entries(cores).map(([name, value]) => ({ what: `${what}: CPU of ${name}`, unit: 'cores', value })),
]
