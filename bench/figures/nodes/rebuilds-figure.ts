/** The figure of rebuilds at once: rows and notes. */
import type { Figure } from '../../rig/bench.ts'
import type { Sizes } from '../../rig/sizes.ts'

export type RebuildsMeasured = {
  /** Processes, each of a group. */
  readonly count: number
  /** Of all processes. */
  readonly perSecond: number
  /** Cores by process. */
  readonly cores: Readonly<Record<string, number>>
}

/** Target: the sum, as a share of the limits. */
const OF_LIMITS = 0.9

export const rebuildsFigure = (
  { data, maxRate, seconds }: Sizes['nodes']['rebuilds'],
  measured: readonly RebuildsMeasured[],
): Figure => ({
  name: 'nodes',
  title: `Rebuilds at once, each with --max-rate ${maxRate}`,
  rows: measured.flatMap(({ count, perSecond, cores }) => [
    { what: `${count} rebuilds: sum`, unit: 'records/s', value: perSecond },
    {
      what: `${count} rebuilds: sum / limits`,
      unit: '',
      value: perSecond / (count * maxRate),
      isRatio: true,
      atLeast: OF_LIMITS,
    },
    ...Object.entries(cores).map(([name, value]) => ({
      what: `${count} rebuilds: CPU of ${name}`,
      unit: 'cores',
      value,
    })),
  ]),
  notes: [
    [
      `${data.payouts} payout events of ${data.lines} lines and ${data.steps} steps are the topic of all groups.`,
      'A group has its own index prefix, on the same node of Elasticsearch and the same broker, and one process.',
      `The rate is that of ${seconds} s in which all of them project.`,
      'A limit stands for a machine that each process would have alone: without it, two of them fill these cores.',
    ].join(' '),
  ],
})
