/**
 * The cost of shards: the same events in indices of one shard and of many. A replay, pages of one organization, and
 * freshness while a mix of events comes. Each organization is in one shard, so pages should cost the same.
 */
import { measurePageCost, ORGANIZATIONS_READ, type PageCost, pageLimits } from '../processes/page-cost.ts'
import { waitForPositions } from '../processes/projection.ts'
import type { Bench, Figure, FigureRow, Measure } from '../rig/bench.ts'
import { percentile, type Spread, spreadOf } from '../rig/statistics.ts'
import { measureRound, sizeOf, startOurs } from './freshness.ts'
import { timesOf } from './freshness-figure.ts'

/** Targets, beside one shard. */
const PAGE_AT_MOST = 1.2
const FRESHNESS_AT_MOST = 1.5
const REPLAY_AT_LEAST = 0.85

type Round = {
  readonly perSecond: number
  readonly pages: ReadonlyMap<number, PageCost>
  readonly visible: number
  readonly visibleP99: number
}

export const measureShards: Measure = async bench => {
  const { counts, rounds } = bench.sizes.shards
  const [least = 1] = counts
  bench.say('warming up')
  await measureWith(bench, least)
  const measured = new Map<number, Round[]>(counts.map(count => [count, []]))
  for (let round = 1; round <= rounds; round++) {
    for (const [count, all] of measured) {
      const of = await measureWith(bench, count)
      all.push(of)
      const ofPages = [...of.pages].map(([limit, { p50 }]) => `page of ${limit} ${p50.toFixed(1)} ms`)
      bench.say(
        `${count} shards: ${of.perSecond.toFixed(0)} events/s, ${ofPages.join(', ')}, seen ${of.visible.toFixed(0)} ms`,
      )
    }
  }
  return figureOf(bench, measured)
}

const measureWith = async (bench: Bench, shards: number): Promise<Round> => {
  const { data, pageSeconds, rate, rateSeconds } = bench.sizes.shards
  const freshness = {
    ...bench.sizes.freshness,
    jvmWarmUp: { ...bench.sizes.freshness.jvmWarmUp, seconds: rateSeconds },
    rates: [rate],
    rounds: 1,
    secondsPerRound: rateSeconds,
  }
  const { free = 0 } = sizeOf(freshness)
  const short = { ...bench, sizes: { ...bench.sizes, freshness } }
  await using stack = new AsyncDisposableStack()
  const settings = { ELASTICSEARCH_SHARDS: String(shards) }
  const { system, topics, prefix, holders, api, projection } = await startOurs(
    short,
    { ...data, free },
    stack,
    settings,
  )
  const pages = new Map<number, PageCost>()
  for (const limit of pageLimits) pages.set(limit, await measurePageCost(bench, { api, holders }, limit, pageSeconds))
  const round = await measureRound(bench, system, rate, rateSeconds)
  await waitForPositions(bench, prefix, await topics.ends())
  const times = timesOf(round.probes)
  return {
    perSecond: data.payouts / projection.seconds,
    pages,
    visible: percentile(times, 50),
    visibleP99: percentile(times, 99),
  }
}

const figureOf = ({ sizes }: Bench, measured: ReadonlyMap<number, readonly Round[]>): Figure => {
  const { counts, data, rate, rounds, rateSeconds } = sizes.shards
  const [least = 1, ...more] = counts
  const spread = (count: number, pick: (round: Round) => number): Spread =>
    spreadOf((measured.get(count) ?? []).map(pick))
  const rows: FigureRow[] = []
  const compare = (
    what: string,
    unit: string,
    pick: (round: Round) => number,
    target: Pick<FigureRow, 'atMost' | 'atLeast'>,
  ): void => {
    for (const count of counts) rows.push({ what: `${what}, ${count} shards`, unit, ...spread(count, pick) })
    for (const count of more) {
      const value = spread(count, pick).value / spread(least, pick).value
      // On other systems than Linux the CPU is not known.
      if (!Number.isNaN(value)) {
        rows.push({ what: `${what}, ${count} shards / ${least}`, unit: '', value, isRatio: true, ...target })
      }
    }
  }
  compare('replay', 'payout events/s', ({ perSecond }) => perSecond, { atLeast: REPLAY_AT_LEAST })
  for (const limit of pageLimits) {
    const of = (round: Round) => round.pages.get(limit) ?? { p50: Number.NaN, cpu: Number.NaN }
    compare(`page of ${limit}, p50`, 'ms', round => of(round).p50, { atMost: PAGE_AT_MOST })
    compare(`page of ${limit}, CPU of Elasticsearch`, 'ms', round => of(round).cpu, { atMost: PAGE_AT_MOST })
  }
  compare('publish → visible, p50', 'ms', ({ visible }) => visible, { atMost: FRESHNESS_AT_MOST })
  compare('publish → visible, p99', 'ms', ({ visibleP99 }) => visibleP99, {})
  return {
    name: 'shards',
    title: 'One shard and many',
    rows,
    notes: [
      [
        `${data.payouts} payout events of ${data.lines} lines and ${data.steps} steps, of ${data.organizations} organizations,`,
        `then pages of ${ORGANIZATIONS_READ} of them through the API, on one connection,`,
        `then ${rate.eventsPerSecond} events/s of all kinds for ${rateSeconds} s. ${rounds} rounds, in turn.`,
        'Each organization is in one shard. One node has all shards.',
      ].join(' '),
    ],
  }
}
