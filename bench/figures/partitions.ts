/** Two projectors against one, and six partitions against one, on one machine. Rounds alternate. */

import { forgetProjectors, outcomes, readMetrics, startProjector, waitForPositions } from '../processes/projection.ts'
import { createTopics, publishDataset, type Topics } from '../processes/publish.ts'
import type { Bench, Figure, Measure } from '../rig/bench.ts'
import { createDataset } from '../rig/dataset.ts'
import { newPrefix } from '../rig/elasticsearch.ts'
import type { Running } from '../rig/process.ts'
import { type Spread, spreadOf } from '../rig/statistics.ts'

const PARTITIONS = 6

/** Seconds of each arrangement. */
type Round = { readonly one: number; readonly two: number; readonly onePartition: number }

export const measurePartitions: Measure = async bench => {
  const { data, rounds } = bench.sizes.partitions
  const dataset = createDataset(data)
  await using six = await createTopics(bench, PARTITIONS)
  const others = await publishDataset(six, dataset, data.payouts, 'payouts, six partitions')
  await using single = await createTopics(bench, 1)
  await publishDataset(single, dataset, data.payouts, 'payouts, one partition')

  const events = others + data.payouts
  const measured: Round[] = []
  for (let round = 1; round <= rounds; round++) {
    const one = await projectBy(bench, six, 1, events)
    const two = await projectBy(bench, six, 2, events)
    const onePartition = await projectBy(bench, single, 1, events)
    measured.push({ one, two, onePartition })
    const rates = [one, two, onePartition].map(seconds => (data.payouts / seconds).toFixed(0))
    bench.say(`round ${round} of ${rounds}: one ${rates[0]}, two ${rates[1]}, one partition ${rates[2]} events/s`)
  }
  return figureOf(bench, others, measured)
}

/** @returns seconds from the first log line "projecting" until all is visible, the assignment of partitions included */
const projectBy = async (bench: Bench, topics: Topics, projectors: number, events: number): Promise<number> => {
  const prefix = newPrefix()
  const ends = await topics.ends()
  await using stack = new AsyncDisposableStack()
  stack.defer(() => bench.elasticsearch.removeIndices(prefix))
  stack.defer(() => forgetProjectors(topics, prefix))
  // If one does not start, the stack must still end the other.
  const started = await Promise.allSettled(
    Array.from({ length: projectors }, async () => stack.use(await startProjector(bench, topics, prefix))),
  )
  const running = started.map((start): Running => {
    if (start.status === 'rejected') throw start.reason
    return start.value
  })
  await Promise.race([waitForPositions(bench, prefix, ends), ...running.map(({ died }) => died)])
  const seconds = (Date.now() - Math.min(...running.map(({ ready }) => ready.time))) / 1000
  await requireAllApplied(running, events)
  return seconds
}

/** Counts duplicates too: records of a lost partition are applied again, at least once each. */
const requireAllApplied = async (running: readonly Running[], events: number): Promise<void> => {
  let applied = 0
  for (const projector of running) {
    const { applied: own = 0, ...others } = outcomes(await readMetrics(projector), 'commission_records_total')
    if ((others.parked ?? 0) > 0) throw new Error(`records are parked: ${JSON.stringify(others)}`)
    applied += own + (others.duplicate ?? 0)
  }
  if (applied < events) throw new Error(`of ${events} events published, ${applied} were projected`)
}

const figureOf = ({ sizes }: Bench, others: number, rounds: readonly Round[]): Figure => {
  const { payouts, lines, steps, organizations } = sizes.partitions.data
  const of = (pick: (round: Round) => number): Spread => spreadOf(rounds.map(pick))
  const arrangements = [
    { name: 'one projector, six partitions', ...of(({ one }) => payouts / one) },
    { name: 'two projectors, six partitions', ...of(({ two }) => payouts / two) },
    { name: 'one projector, one partition', ...of(({ onePartition }) => payouts / onePartition) },
  ]
  return {
    name: 'partitions',
    title: 'Two projectors against one, and six partitions against one',
    rows: [
      ...arrangements.map(({ name, ...rates }) => ({ what: name, unit: 'payout events/s', ...rates })),
      { what: 'two projectors / one', unit: '', ...of(({ one, two }) => one / two), isRatio: true },
      {
        what: 'six partitions / one',
        unit: '',
        ...of(({ one, onePartition }) => onePartition / one),
        isRatio: true,
      },
    ],
    notes: [
      [
        `${payouts} payout events of ${lines} lines and ${steps} steps, of ${organizations} organizations,`,
        `after ${others} reps and periods.`,
        'Two projectors start at the same moment in one group;',
        'the time starts with the first one and includes the assignment of partitions.',
        'A second projector helps when one core is not enough, or when the first one dies.',
        'On a machine whose cores are busy with one projector, it adds nothing.',
      ].join(' '),
    ],
    pictures: [{ name: 'partitions', title: 'Projectors and partitions', unit: 'payout events/s', bars: arrangements }],
  }
}
