/**
 * The cost of a copy: the same installation on one node of Elasticsearch and one broker without replicas, and on three
 * of each, where each shard has a replica and each partition two more. All run at the same time, and rounds alternate.
 * Then rebuilds at once.
 */

import { startOwnServers } from '../../processes/own-servers.ts'
import { measurePageCost, type PageCost, pageLimits } from '../../processes/page-cost.ts'
import { startProjection, waitForPositions } from '../../processes/projection.ts'
import type { Bench, Figure, Measure } from '../../rig/bench.ts'
import { percentile } from '../../rig/statistics.ts'
import { measureRound, sizeOf, startOurs } from '../freshness.ts'
import { timesOf } from '../freshness-figure.ts'
import { type CopyRound, type CopyRounds, copyFigure, cpuOfEach } from './nodes-figure.ts'
import { measureRebuilds } from './rebuilds.ts'

export const measureNodes: Measure = async bench => {
  const figures: Figure[] = []
  if (bench.services.from === 'jvm') figures.push(await measureCopies(bench))
  else bench.say('three nodes are left out: they run as Java processes only')
  return [...figures, await measureRebuilds(bench)]
}

type Side = Awaited<ReturnType<typeof startSide>>

const measureCopies = async (bench: Bench): Promise<Figure> => {
  await using stack = new AsyncDisposableStack()
  bench.say('starting one broker and one node, and three of each')
  const [one, three] = [await startOwnServers(bench, 1, stack), await startOwnServers(bench, 3, stack)]
  const sides = { one: await startSide(one, 0, stack), three: await startSide(three, 1, stack) }
  const rounds: CopyRounds = { one: [], three: [] }
  for (let round = 1; round <= bench.sizes.nodes.rounds; round++) {
    for (const name of ['one', 'three'] as const) {
      const measured = await measureSide(sides[name])
      rounds[name].push(measured)
      const pages = pageLimits.map(limit => `page of ${limit} ${measured.pages.get(limit)?.p50.toFixed(1)} ms`)
      bench.say(
        `${name} of each: seen ${measured.p50.toFixed(0)} ms, ${pages.join(', ')}, replay ${measured.replay.toFixed(0)} events/s`,
      )
    }
  }
  return copyFigure(bench.sizes.nodes, rounds)
}

/** Publishes, projects, and warms projector, API and servers up. They run until the stack is disposed of. */
const startSide = async (bench: Bench, replicas: number, stack: AsyncDisposableStack) => {
  const { shards, data, warmUpSeconds, rounds, rate, rateSeconds } = bench.sizes.nodes
  const freshness = {
    ...bench.sizes.freshness,
    jvmWarmUp: { eventsPerSecond: rate.eventsPerSecond, seconds: warmUpSeconds },
    rates: [rate],
    rounds,
    secondsPerRound: rateSeconds,
  }
  const settings = { ELASTICSEARCH_SHARDS: String(shards), ELASTICSEARCH_REPLICAS: String(replicas) }
  const { free = 0 } = sizeOf(freshness)
  const own = { ...bench, sizes: { ...bench.sizes, freshness } }
  return { bench, settings, ...(await startOurs(own, { ...data, free }, stack, settings)) }
}

const measureSide = async ({ bench, settings, system, topics, prefix, ...reading }: Side): Promise<CopyRound> => {
  const { pageSeconds, rate, rateSeconds } = bench.sizes.nodes
  const pages = new Map<number, PageCost>()
  for (const limit of pageLimits) pages.set(limit, await measurePageCost(bench, reading, limit, pageSeconds))
  const { probes, perSecond, seconds, cpu } = await measureRound(bench, system, rate, rateSeconds)
  await waitForPositions(bench, prefix, await topics.ends())
  const records = (await topics.ends()).reduce((sum, end) => sum + end, 0)
  await using replay = await startProjection(bench, topics, { settings })
  return {
    pages,
    p50: percentile(timesOf(probes), 50),
    p99: percentile(timesOf(probes), 99),
    event: cpuOfEach(cpu, perSecond * seconds),
    replay: records / replay.seconds,
    replayed: cpuOfEach(replay.cpu, records),
  }
}
