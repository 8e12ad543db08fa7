/**
 * Replay: how fast an existing topic is projected into empty indices until all of it is visible, beside the bulk ceiling:
 * the very same bulk requests sent again by a loop that does nothing else. Rounds of both alternate.
 */
import { BULKS_IN_FLIGHT } from '../projector/limits.ts'
import type { Bench, Figure, Measure, Row } from './bench.ts'
import { type BulkRequests, createBulkRequests } from './ceiling.ts'
import { createDataset, type DatasetSize } from './dataset.ts'
import { newPrefix } from './elasticsearch.ts'
import { printProfile } from './profile.ts'
import { LOOK_MS, type Projection, project } from './projection.ts'
import { createTopics, type Topics } from './publish.ts'
import { startRecordingProxy } from './recording-proxy.ts'
import { agree, spreadOf } from './statistics.ts'
import { EVERYTHING_ELSE } from './usage.ts'

/** Warming up ends when two rounds of both differ by no more percent than this, or after so many rounds. */
const WARM_PERCENT = 10
const WARM_ROUNDS = 4

export const measureReplay: Measure = async bench => {
  const { say, sizes, profile } = bench
  const { data, rounds } = sizes.replay
  await using topics = await createTopics(bench)
  const dataset = createDataset(data)
  const recorded = [...dataset.peopleAndPeriods()]
  await topics.publishAll(recorded, recorded.length, 'publishing reps and periods')
  await topics.publishAll(dataset.payouts(), data.payouts, 'publishing payouts')

  const events = recorded.length + data.payouts
  const bulks = await recordBulks(bench, topics, events)
  const measurePair = async (): Promise<Pair> => ({
    ceiling: await sendBulks(bench, bulks),
    projection: await projectOnce(bench, topics, events),
  })
  await warmUp(bench, measurePair)

  const pairs: Pair[] = []
  for (let round = 1; round <= rounds; round++) {
    const pair = await measurePair()
    pairs.push(pair)
    say(`replay, round ${round} of ${rounds}: ${describe(data.payouts, pair)}`)
  }
  if (profile !== undefined) {
    await projectOnce(bench, topics, events, ['--cpu-prof', `--cpu-prof-dir=${profile}`])
    await printProfile(profile, say)
  }
  return figureOf(data, recorded.length, bulks, pairs)
}

type Ceiling = { readonly seconds: number }
type Pair = { readonly ceiling: Ceiling; readonly projection: Omit<Projection, 'projector'> }

const describe = (payouts: number, { ceiling, projection }: Pair): string => {
  const [rate, most] = [payouts / projection.seconds, payouts / ceiling.seconds]
  const others = elsewhere({ ceiling, projection }).map(cores => `, others had ${cores.toFixed(2)} cores`)
  return `${rate.toFixed(0)} events/s, ceiling ${most.toFixed(0)}: ${(rate / most).toFixed(2)}${others}`
}

/** One projection through a proxy that keeps the bulk requests. Not measured. */
const recordBulks = async (bench: Bench, topics: Topics, events: number): Promise<BulkRequests> => {
  await using proxy = await startRecordingProxy(bench.elasticsearch.url, path => path.startsWith('/_bulk'))
  await using projection = await project(bench, topics, {
    elasticsearchUrl: proxy.url,
    what: 'recording the bulk requests',
  })
  requireAllApplied(projection, events)
  await projection.projector.stop()
  return createBulkRequests(proxy.recorded, projection.prefix)
}

/** Until the JVM is warm for both: what it has compiled for one is not all that the other needs. */
const warmUp = async ({ say, sizes }: Bench, measurePair: () => Promise<Pair>): Promise<void> => {
  let before: Pair | undefined
  for (let round = 1; round <= WARM_ROUNDS; round++) {
    const pair = await measurePair()
    say(`warming up, round ${round}: ${describe(sizes.replay.data.payouts, pair)}`)
    if (before && isAsFast(before, pair)) return
    before = pair
  }
}

const isAsFast = (a: Pair, b: Pair): boolean =>
  agree(a.ceiling.seconds, b.ceiling.seconds, WARM_PERCENT) &&
  agree(a.projection.seconds, b.projection.seconds, WARM_PERCENT)

const sendBulks = async ({ elasticsearch, signal }: Bench, bulks: BulkRequests): Promise<Ceiling> => {
  const prefix = newPrefix()
  await elasticsearch.createIndices(prefix)
  try {
    bulks.aimAt(prefix)
    const milliseconds = await bulks.send(elasticsearch, prefix, BULKS_IN_FLIGHT, signal)
    return { seconds: milliseconds / 1000 }
  } finally {
    await elasticsearch.removeIndices(prefix)
  }
}

const projectOnce = async (
  bench: Bench,
  topics: Topics,
  events: number,
  flags: readonly string[] = [],
): Promise<Pair['projection']> => {
  await using projection = await project(bench, topics, { flags })
  requireAllApplied(projection, events)
  await projection.projector.stop()
  return projection
}

/** A figure of a projection that parked or lost something would be none. */
const requireAllApplied = ({ records }: Projection, events: number): void => {
  if (records.applied === events) return
  throw new Error(`of ${events} events published, ${JSON.stringify(records)} were projected`)
}

/** Cores that others had while a projection was measured. */
const elsewhere = ({ projection: { cpu, seconds } }: Pair): number[] => {
  const used = cpu[EVERYTHING_ELSE]
  return used === undefined ? [] : [used / seconds]
}

const figureOf = (
  { payouts, lines, steps }: DatasetSize,
  others: number,
  bulks: BulkRequests,
  pairs: readonly Pair[],
): Figure => {
  const projections = pairs.map(({ projection }) => projection)
  const perEvent = (process: string): number[] =>
    projections.flatMap(({ cpu }) => (1_000 * (cpu[process] ?? Number.NaN)) / payouts).filter(Number.isFinite)
  const optional = (what: string, unit: string, values: readonly number[]): Row[] =>
    values.length === 0 ? [] : [{ what, unit, ...spreadOf(values) }]

  return {
    name: 'replay',
    title: 'Replay: an existing topic into empty indices, until all is visible',
    rows: [
      {
        what: 'projector',
        unit: 'payout events/s',
        ...spreadOf(projections.map(({ seconds }) => payouts / seconds)),
        atLeast: 5_000,
      },
      {
        what: 'bulk ceiling',
        unit: 'payout events/s',
        ...spreadOf(pairs.map(({ ceiling }) => payouts / ceiling.seconds)),
      },
      {
        what: 'projector / ceiling',
        unit: '',
        ...spreadOf(pairs.map(({ ceiling, projection }) => ceiling.seconds / projection.seconds)),
        isRatio: true,
        atLeast: 0.4,
      },
      {
        what: 'projector',
        unit: 'documents/s',
        ...spreadOf(projections.map(({ documents, seconds }) => (documents.written ?? 0) / seconds)),
      },
      {
        what: 'bulk ceiling',
        unit: 'documents/s',
        ...spreadOf(pairs.map(({ ceiling }) => bulks.documents / ceiling.seconds)),
      },
      ...['the projector', 'Elasticsearch', 'Kafka'].flatMap(process =>
        optional(`CPU of ${process}`, 'ms per event', perEvent(process)),
      ),
      ...optional('CPU of everything else meanwhile', 'cores', pairs.flatMap(elsewhere)),
      ...optional(
        'peak memory of the projector',
        'MiB',
        projections.flatMap(({ peakMebibytes }) => peakMebibytes ?? []),
      ),
    ],
    notes: [
      `${payouts} payout events of ${lines} lines and ${steps} steps, 10 % of them recalculations, of 50 organizations in 6 partitions, after ${others} reps and periods, which take time and are not counted.`,
      `The projector is measured from its log line "projecting" until the published position of every partition is its end, looked at every ${LOOK_MS} ms. Each round has a new process, empty indices and a new consumer group.`,
      `The ceiling is what one projection sent (${bulks.documents} documents, ${(bulks.bytes / 1e6).toFixed(0)} MB of bulk bodies), recorded on the way in a round that was not measured and sent again to fresh indices of the same mappings, ${BULKS_IN_FLIGHT} requests in flight, and one refresh.`,
      'CPU: milliseconds per event are seconds per 1,000 events. Rounds of ceiling and projector alternate; the ratio is of neighbours.',
    ],
  }
}
