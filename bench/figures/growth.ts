/**
 * Cost as the data grows: one organization with ten times as many payouts each time, projected and read. For the
 * largest size also the rate during its projection, and restarts of its projector. Then the same events in longer
 * chains.
 */
import { startApi } from '../processes/api-process.ts'
import {
  outcomes,
  type RunningProjection,
  readMetrics,
  requireAllApplied,
  startProjection,
  startProjector,
  waitForPositions,
} from '../processes/projection.ts'
import { createBenchKey, createTopics, publishDataset, publishPayout, type Topics } from '../processes/publish.ts'
import type { Bench, Measure } from '../rig/bench.ts'
import { createDataset, type DatasetOrganization, payoutOf } from '../rig/dataset.ts'
import { createDatasetRandom } from '../rig/random.ts'
import { memoryMebibytes } from '../rig/usage.ts'
import { type Chains, figureOfChains, figureOfGrowth, type Growth, type Stage } from './growth-figure.ts'
import { measurePages, measureTimeToVisible } from './pages.ts'

/** Unread records when a projector starts again. */
const UNREAD = 200

export const measureGrowth: Measure = async bench => {
  const { payouts, chains } = bench.sizes.growth
  const stages: Stage[] = []
  for (const size of payouts) stages.push(await measureStage(bench, size, size === payouts.at(-1)))
  const measured = await measureChains(bench)
  return [figureOfGrowth(bench.sizes.growth, stages), figureOfChains(chains.data, measured)]
}

const measureStage = async (bench: Bench, payouts: number, isLargest: boolean): Promise<Stage> => {
  const { shape, recalculated, restarts } = bench.sizes.growth
  const dataset = createDataset({ payouts, organizations: 1, recalculated, ...shape })
  const [organization] = dataset.organizations
  if (organization === undefined) throw new Error('there is no organization')
  const key = createBenchKey(organization.id)
  await using topics = await createTopics(bench)
  await topics.publish(key.event)
  const others = await publishDataset(topics, dataset, payouts, `${payouts} payouts`)

  const growth: Growth[] = []
  await using projection = await startProjection(bench, topics, {
    what: `projecting ${payouts} payouts`,
    onPoll: async projector => {
      // Counts decided records: published positions move seconds apart while the projector is far behind.
      const { applied = 0 } = outcomes(await readMetrics(projector), 'commission_records_total')
      const seconds = (Date.now() - projector.ready.time) / 1000
      // One organization is in one partition, in order: reps and periods are done when its payouts begin.
      growth.push({ payouts: applied - others, seconds, mebibytes: memoryMebibytes(projector.pid) })
    },
  })
  requireAllApplied(projection, others + payouts)
  const next = newPayouts(organization, bench)
  const stage = { payouts, growth, peakMebibytes: projection.peakMebibytes, diskBytes: await diskOf(bench, projection) }
  const read = await measureReading(bench, topics, projection, key.text, organization.reps, next)
  await projection.projector.stop()
  const restartSeconds = isLargest ? await measureRestarts(bench, topics, projection.prefix, next, restarts) : []
  return { ...stage, ...read, restartSeconds }
}

type NextPayout = () => ReturnType<typeof payoutOf>

/** Payouts of pairs of rep and period without one: recalculations left the last pairs free. */
const newPayouts = (organization: DatasetOrganization, { sizes }: Bench): NextPayout => {
  const random = createDatasetRandom('new payouts')
  let pair = organization.reps.length * organization.periods.length
  return () => payoutOf(organization, --pair, null, sizes.growth.shape, random)
}

const measureReading = async (
  bench: Bench,
  topics: Topics,
  projection: RunningProjection,
  key: string,
  reps: readonly string[],
  next: NextPayout,
): Promise<Pick<Stage, 'walk' | 'seen'>> => {
  await using api = await startApi(bench, projection.prefix, bench.elasticsearch.url)
  const walk = await measurePages(bench, api, key, reps)
  const seen: number[] = []
  for (let probe = 0; probe < bench.sizes.growth.probes; probe++) {
    const payout = next()
    const times = measureTimeToVisible(bench, api, key, payout.id, () => publishPayout(topics, payout))
    seen.push(await Promise.race([times, projection.projector.died]))
  }
  return { walk, seen }
}

/** Bytes of all segments of the indices. The flush first writes what is only in the translog into segments. */
const diskOf = async ({ elasticsearch }: Bench, { prefix }: RunningProjection): Promise<number> => {
  await elasticsearch.call('POST', `/${prefix}-*/_flush`)
  const { indices } = await elasticsearch.call<Segments>('GET', `/${prefix}-*/_segments`)
  const shards = Object.values(indices).flatMap(index => Object.values(index.shards).flat())
  const segments = shards.flatMap(shard => Object.values(shard.segments))
  return segments.reduce((sum, { size_in_bytes }) => sum + size_in_bytes, 0)
}

type Shard = { readonly segments: Readonly<Record<string, { readonly size_in_bytes: number }>> }
type Segments = {
  readonly indices: Readonly<Record<string, { readonly shards: Readonly<Record<string, readonly Shard[]>> }>>
}

/** @returns seconds from the start of the process until the first unread record is published */
const measureRestarts = async (
  bench: Bench,
  topics: Topics,
  prefix: string,
  next: NextPayout,
  times: number,
): Promise<number[]> => {
  const taken: number[] = []
  for (let time = 0; time < times; time++) {
    const before = await topics.ends()
    for (let record = 0; record < UNREAD; record++) await publishPayout(topics, next())
    const ends = await topics.ends()
    const began = performance.now()
    await using projector = await startProjector(bench, topics, prefix)
    const first = before.map((end, partition) => Math.min(end + 1, ends[partition] ?? 0))
    await Promise.race([waitForPositions(bench, prefix, first, { everyMilliseconds: 5 }), projector.died])
    taken.push((performance.now() - began) / 1000)
    await Promise.race([waitForPositions(bench, prefix, ends), projector.died])
  }
  return taken
}

/** Seconds of each round, by chain length. Rounds of the lengths alternate. */
const measureChains = async (bench: Bench): Promise<Chains> => {
  const { lengths, data, rounds } = bench.sizes.growth.chains
  await using stack = new AsyncDisposableStack()
  const chains: { length: number; topics: Topics; events: number; seconds: number[] }[] = []
  for (const length of lengths) {
    const topics = stack.use(await createTopics(bench))
    const dataset = createDataset({ ...data, chainLength: length })
    const others = await publishDataset(topics, dataset, data.payouts, `payouts in chains of ${length}`)
    chains.push({ length, topics, events: others + data.payouts, seconds: [] })
  }
  for (let round = 0; round < rounds; round++) {
    for (const { length, topics, events, seconds } of chains) {
      await using projection = await startProjection(bench, topics)
      requireAllApplied(projection, events)
      await projection.projector.stop()
      seconds.push(projection.seconds)
      bench.say(`chains of ${length}: ${(data.payouts / projection.seconds).toFixed(0)} events/s`)
    }
  }
  return chains
}
