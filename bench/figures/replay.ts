/**
 * Replay: the rate at which an existing topic is projected into empty indices until all of it is visible. Measured
 * beside the bulk ceiling (the same bulk requests, sent by a loop that does nothing else) and plain pipes on the same
 * topic. Rounds alternate.
 */
import { BULKS_IN_FLIGHT } from '../../core/projection/index.ts'
import { type Peer, type Piped, pipeOnce, preparePeers } from '../peers.ts'
import { type BulkRequests, createBulkRequests } from '../processes/ceiling.ts'
import { requireAllApplied, startProjection } from '../processes/projection.ts'
import { createTopics, publishDataset, type Topics } from '../processes/publish.ts'
import { isBulkWrite, startRecordingProxy } from '../processes/recording-proxy.ts'
import type { Bench, Figure, Measure } from '../rig/bench.ts'
import { separate } from '../rig/cores.ts'
import { createDataset, type DatasetSize } from '../rig/dataset.ts'
import { newPrefix } from '../rig/elasticsearch.ts'
import { printProfile } from '../rig/profile.ts'
import { agree } from '../rig/statistics.ts'
import { watchCpu } from '../rig/usage.ts'
import {
  type Ceiling,
  type CeilingPair,
  coresElsewhere,
  figureOfPairs,
  figureOfReplay,
  type Mix,
  type Round,
} from './replay-figure.ts'

/**
 * The warm-up ends when two rounds differ by at most this percentage, in both measurements, or after `warmUpRounds`.
 */
const WARM_PERCENT = 10

export const measureReplay: Measure = async bench => {
  const { half } = bench.sizes.replay
  const figures = await measureMix(bench)
  await using mix = await publishMix(bench, half.data)
  const rounds = await measurePairs(bench, mix, half.rounds, 'one organization with half')
  const what = `one of ${half.data.organizations} organizations with half of ${half.data.payouts} payout events`
  return [
    ...figures,
    figureOfPairs('Replay: one organization with half', 'one organization with half', half.data, rounds, [
      `As above; ${what} has all of its events in one partition. Not warmed up again.`,
    ]),
  ]
}

/** Measures the first mix, and frees its memory before the second one. */
const measureMix = async (bench: Bench): Promise<Figure[]> => {
  const { say, sizes, profile } = bench
  const { data, rounds, separateRounds } = sizes.replay
  await using peers = await preparePeers(bench)
  await using mix = await publishMix(bench, data)
  await warmUp(bench, mix)

  const measured: Round[] = []
  for (let round = 1; round <= rounds; round++) {
    const pair = await measurePair(bench, mix)
    say(`replay, round ${round} of ${rounds}: ${describe(data.payouts, pair)}`)
    measured.push({ ...pair, pipes: await measurePipes(bench, mix, peers.all) })
  }
  const figures = [figureOfReplay(data, mix, measured)]
  const separated = await measureSeparated(bench, mix, separateRounds)
  if (separated.length > 0) {
    figures.push(
      figureOfPairs('Replay: each on a core of its own', 'each on a core of its own', data, separated, [
        [
          'Elasticsearch and Kafka run on one core; the projector, and in its turn the ceiling’s loop,',
          'on another one. So they take nothing from each other.',
          'Threads that were made for two cores share one here.',
        ].join(' '),
      ]),
    )
  }
  if (profile !== undefined) {
    await projectOnce(bench, mix, ['--cpu-prof', `--cpu-prof-dir=${profile}`])
    await printProfile(profile, say)
  }
  return figures
}

const publishMix = async (bench: Bench, data: DatasetSize): Promise<Mix> => {
  await using stack = new AsyncDisposableStack()
  const topics = stack.use(await createTopics(bench))
  const { payouts } = data
  const others = await publishDataset(topics, createDataset(data), payouts)
  const bulks = await recordBulks(bench, topics, others + payouts)
  const kept = stack.move()
  return { topics, payouts, others, bulks, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

/** Projects once through a recording proxy. Not measured. */
const recordBulks = async (bench: Bench, topics: Topics, events: number): Promise<BulkRequests> => {
  await using proxy = await startRecordingProxy(bench.elasticsearch.url, isBulkWrite)
  await using projection = await startProjection(bench, topics, {
    elasticsearchUrl: proxy.url,
    what: 'recording the bulk requests',
  })
  requireAllApplied(projection, events)
  await projection.projector.stop()
  return createBulkRequests(proxy.recorded, projection.prefix)
}

/** Warms the JVM up for both: code compiled for one is not all that the other needs. */
const warmUp = async (bench: Bench, mix: Mix): Promise<void> => {
  let before: CeilingPair | undefined
  for (let round = 1; round <= bench.sizes.replay.warmUpRounds; round++) {
    const pair = await measurePair(bench, mix)
    bench.say(`warming up, round ${round}: ${describe(mix.payouts, pair)}`)
    if (before && isAsFast(before, pair)) return
    before = pair
  }
}

const isAsFast = (a: CeilingPair, b: CeilingPair): boolean =>
  agree(a.ceiling.seconds, b.ceiling.seconds, WARM_PERCENT) &&
  agree(a.projection.seconds, b.projection.seconds, WARM_PERCENT)

const measurePair = async (bench: Bench, mix: Mix): Promise<CeilingPair> => ({
  ceiling: await sendBulks(bench, mix.bulks),
  projection: await projectOnce(bench, mix),
})

const measurePairs = async (bench: Bench, mix: Mix, rounds: number, what: string): Promise<CeilingPair[]> => {
  const pairs: CeilingPair[] = []
  for (let round = 1; round <= rounds; round++) {
    const pair = await measurePair(bench, mix)
    bench.say(`${what}, round ${round} of ${rounds}: ${describe(mix.payouts, pair)}`)
    pairs.push(pair)
  }
  return pairs
}

/** Returns nothing if processes cannot be pinned to cores. */
const measureSeparated = async (bench: Bench, mix: Mix, rounds: number): Promise<CeilingPair[]> => {
  await using separated = await separate(bench)
  return separated === undefined ? [] : await measurePairs(bench, mix, rounds, 'each on a core of its own')
}

const measurePipes = async (
  bench: Bench,
  { topics, payouts, others }: Mix,
  peers: readonly Peer[],
): Promise<Round['pipes']> => {
  const pipes: Record<string, Piped> = {}
  for (const peer of peers) {
    const piped = await pipeOnce(bench, topics, peer, payouts + others)
    bench.say(`  ${peer.name}: ${((payouts + others) / piped.seconds).toFixed(0)} documents/s`)
    pipes[peer.name] = piped
  }
  return pipes
}

const describe = (payouts: number, { ceiling, projection }: CeilingPair): string => {
  const [rate, ceilingRate] = [payouts / projection.seconds, payouts / ceiling.seconds]
  const others = coresElsewhere({ ceiling, projection }).map(cores => `, others had ${cores.toFixed(2)} cores`)
  return `${rate.toFixed(0)} events/s, ceiling ${ceilingRate.toFixed(0)}: ${(rate / ceilingRate).toFixed(2)}${others}`
}

const sendBulks = async ({ elasticsearch, services, signal }: Bench, bulks: BulkRequests): Promise<Ceiling> => {
  const prefix = newPrefix()
  await elasticsearch.createIndices(prefix)
  try {
    bulks.setPrefix(prefix)
    const cpu = watchCpu({ Elasticsearch: services.elasticsearch?.pid })
    const milliseconds = await bulks.send(elasticsearch, prefix, BULKS_IN_FLIGHT, signal)
    return { seconds: milliseconds / 1000, cpu: cpu() }
  } finally {
    await elasticsearch.removeIndices(prefix)
  }
}

const projectOnce = async (
  bench: Bench,
  { topics, payouts, others }: Mix,
  flags: readonly string[] = [],
): Promise<CeilingPair['projection']> => {
  await using projection = await startProjection(bench, topics, { flags })
  requireAllApplied(projection, payouts + others)
  await projection.projector.stop()
  return projection
}
