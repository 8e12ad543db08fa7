/**
 * The cost of corrections. First a replay in which half of the payouts replace another one, beside one without. Then
 * freshness with a million payouts that are replaced at random, beside the same rates without them. At last one rate
 * for minutes: the lag must stay flat.
 */
import { requireAllApplied, startProjection } from '../processes/projection.ts'
import { createTopics, publishDataset } from '../processes/publish.ts'
import type { Bench, Figure, FigureRow, Measure } from '../rig/bench.ts'
import { createDataset } from '../rig/dataset.ts'
import type { FreshnessRate } from '../rig/sizes.ts'
import { spreadOf } from '../rig/statistics.ts'
import { measureOurs, sizeOf } from './freshness.ts'
import { coreRow, type FreshnessRound, type Measured, perSecondOf, spreadAt } from './freshness-figure.ts'

/** Targets: times as a share of those with nothing before; the p99 of the long rate, in milliseconds. */
const OF_EMPTY = 1.5
const P99_MILLISECONDS = 500
/** Target: events/s of the replay with corrections, as a share of the replay without. */
const OF_PLAIN_REPLAY = 0.7

export const measureCorrections: Measure = async bench => {
  const { payouts, rates, constant } = bench.sizes.corrections
  const replay = await measureReplays(bench)
  const short = { ...bench.sizes.freshness, rates }
  const empty = await measureOurs(withFreshness(bench, short), sizeOf(short))
  const full = await measureOurs(withFreshness(bench, short), sizeOf(short, payouts))
  const long = { ...bench.sizes.freshness, ...constant, rates: [constant.rate] }
  const { measured } = await measureOurs(withFreshness(bench, long), sizeOf(long))
  return [
    replay,
    figureOfLarge(bench, empty.measured, full.measured),
    figureOfLong(bench, measured.get(constant.rate) ?? []),
  ]
}

/** Projects two topics in turn. */
const measureReplays = async (bench: Bench): Promise<Figure> => {
  const { data, recalculated, rounds } = bench.sizes.corrections.replay
  await using stack = new AsyncDisposableStack()
  const publish = async (share: number) => {
    const topics = stack.use(await createTopics(bench))
    const others = await publishDataset(topics, createDataset({ ...data, recalculated: share }), data.payouts)
    return { topics, events: others + data.payouts }
  }
  const [without, corrected] = [await publish(0), await publish(recalculated)]
  const project = async ({ topics, events }: typeof without): Promise<number> => {
    await using projection = await startProjection(bench, topics)
    requireAllApplied(projection, events)
    await projection.projector.stop()
    return data.payouts / projection.seconds
  }
  await project(corrected)
  const rates: { without: number; corrected: number }[] = []
  for (let round = 0; round < rounds; round++) {
    rates.push({ without: await project(without), corrected: await project(corrected) })
  }
  const share = `${100 * recalculated} %`
  return {
    name: 'corrections',
    title: `Replay: ${share} of the payouts replace another one`,
    rows: [
      { what: 'without', unit: 'payout events/s', ...spreadOf(rates.map(rate => rate.without)) },
      { what: `${share} replace another one`, unit: 'payout events/s', ...spreadOf(rates.map(rate => rate.corrected)) },
      {
        what: `${share} replace another one / without`,
        unit: '',
        ...spreadOf(rates.map(rate => rate.corrected / rate.without)),
        isRatio: true,
        atLeast: OF_PLAIN_REPLAY,
      },
    ],
    notes: [
      `${data.payouts} payout events of ${data.organizations} organizations. The payouts that are replaced are chosen at random of all current ones of the organization. Rounds alternate; the first one is not counted.`,
    ],
  }
}

const withFreshness = (bench: Bench, freshness: Bench['sizes']['freshness']): Bench => ({
  ...bench,
  sizes: { ...bench.sizes, freshness },
})

const figureOfLarge = ({ sizes }: Bench, empty: Measured, full: Measured): Figure => {
  const payouts = sizes.corrections.payouts.toLocaleString('en-US')
  return {
    name: 'corrections',
    title: `Freshness with ${payouts} payouts`,
    rows: sizes.corrections.rates.flatMap(rate => rowsOf(rate, empty.get(rate) ?? [], full.get(rate) ?? [])),
    notes: [
      `${payouts} payouts are published and projected before. Then the rates of the tables above, from the same publisher: four of five payouts replace one of all that are current, chosen at random. "Before" is the same run in the same minutes with no payouts before. The projector starts anew before the rates, so it knows no document.`,
    ],
  }
}

const rowsOf = (
  { eventsPerSecond }: FreshnessRate,
  empty: readonly FreshnessRound[],
  full: readonly FreshnessRound[],
): FigureRow[] => {
  const at = `${eventsPerSecond.toLocaleString('en-US')} events/s`
  const time = (percent: number): FigureRow[] => {
    const [before, now] = [spreadAt(empty, percent), spreadAt(full, percent)]
    return [
      { what: `${at}: p${percent}`, unit: 'ms', ...now },
      { what: `${at}: p${percent} with no payouts before`, unit: 'ms', ...before },
      {
        what: `${at}: p${percent} / with no payouts before`,
        unit: '',
        value: now.value / before.value,
        isRatio: true,
        atMost: OF_EMPTY,
      },
    ]
  }
  return [
    ...time(50),
    ...time(99),
    { what: `${at}: chains read back`, unit: '/s', ...perSecondOf(full, 'chainsRead') },
    ...['Elasticsearch', 'the projector'].flatMap(name => [
      ...coreRow(`${at}: CPU of ${name}`, full, name),
      ...coreRow(`${at}: CPU of ${name} with no payouts before`, empty, name),
    ]),
  ]
}

const figureOfLong = ({ sizes }: Bench, rounds: readonly FreshnessRound[]): Figure => {
  const { rate, rounds: count, secondsPerRound } = sizes.corrections.constant
  const title = `Freshness at ${rate.eventsPerSecond.toLocaleString('en-US')} events/s for minutes`
  const lags = rounds.map(({ lag = 0 }) => lag)
  return {
    name: 'corrections',
    title,
    rows: [
      { what: 'publish → visible, p50', unit: 'ms', ...spreadAt(rounds, 50) },
      { what: 'publish → visible, p99', unit: 'ms', ...spreadAt(rounds, 99), atMost: P99_MILLISECONDS },
      { what: 'published', unit: 'events/s', ...spreadOf(rounds.map(({ perSecond }) => perSecond)) },
      { what: 'not visible at the end of a round', unit: 'records', ...spreadOf(lags) },
      ...lags.map((lag, index) => ({ what: `after round ${index + 1}`, unit: 'records', value: lag })),
      ...['Elasticsearch', 'the projector'].flatMap(name => coreRow(`CPU of ${name}`, rounds, name)),
    ],
    notes: [
      `${count} rounds of ${secondsPerRound} s, one right after the other. The lag is flat if no round adds to it.`,
    ],
  }
}
