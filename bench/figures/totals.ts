/**
 * Totals as the history grows: one organization, a tenth of whose payouts replace another one. Each request is about
 * another moment, so that nothing is cached: now, just after new payouts, and as of payouts of all times. Then the
 * pages and totals that select records: of a deal, of a rep, and several by id. At the end the first checkpoint after a
 * start.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { balancesIndexOf, FIRST_GENERATION } from '../../schemas/stored/documents.ts'
import { type RunningApi, startApi, timeRequest } from '../processes/api-process.ts'
import { type RunningProjection, requireAllApplied, startProjection } from '../processes/projection.ts'
import { createBenchKey, createTopics, publishDataset, publishPayout, type Topics } from '../processes/publish.ts'
import type { Bench, Figure, FigureRow, Measure } from '../rig/bench.ts'
import { createDataset, type Dataset, payoutOf } from '../rig/dataset.ts'
import { createDatasetRandom } from '../rig/random.ts'
import { percentile } from '../rig/statistics.ts'
import { type FirstCheckpoint, measureCheckpoint, rowsOfCheckpoint } from './checkpoint.ts'
import { measureTimeToVisible } from './pages.ts'
import { measureSelected, rowsOfSelected, SELECTED_NOTE, type Selected } from './selected.ts'

/** Changes from one balance to the next, if there are few rows. */
const CHANGES = 1_000
const BALANCES_INTERVAL_MS = 250
/** To reach. */
const P99_MAX = 150
const RATIO_MAX = 1.5

/** Milliseconds of each request. */
type Stage = {
  readonly payouts: number
  readonly balanceSeconds: number
  readonly now: readonly number[]
  readonly asOf: readonly number[]
  readonly selected: Selected
  readonly checkpoint: FirstCheckpoint
}

export const measureTotals: Measure = async bench => {
  const stages: Stage[] = []
  for (const payouts of bench.sizes.totals.payouts) stages.push(await measureStage(bench, payouts))
  return figureOfTotals(stages)
}

const measureStage = async (bench: Bench, payouts: number): Promise<Stage> => {
  const { recalculated, moments, payoutsOfDeal } = bench.sizes.totals
  const shape = { ...bench.sizes.totals.shape, deals: payouts / payoutsOfDeal }
  const dataset = createDataset({ payouts, organizations: 1, recalculated, ...shape })
  const [organization] = dataset.organizations
  if (organization === undefined) throw new Error('there is no organization')
  const key = createBenchKey(organization.id)
  await using topics = await createTopics(bench)
  await topics.publish(key.event)
  const others = await publishDataset(topics, dataset, payouts, `${payouts} payouts`)
  await using projection = await startProjection(bench, topics, {
    what: `projecting ${payouts} payouts`,
  })
  requireAllApplied(projection, others + payouts)
  const balanceSeconds = await untilBalanced(bench, projection, Math.floor((others + payouts) / CHANGES))
  // Started after the projection: nothing is cached, as after a restart.
  await using api = await startApi(bench, projection.prefix, bench.elasticsearch.url)
  const asked = idsOf(dataset, payouts, moments)
  const asOf: number[] = []
  for (const id of asked) asOf.push(await timeRequest(api, key.text, `/totals?as_of=${id}`))
  const now = await measureNow(bench, topics, api, key.text, dataset, payouts)
  const selected = await measureSelected(bench, api, key.text, organization.reps, asked)
  const checkpoint = await measureCheckpoint(bench, projection.prefix, key.text)
  // The first requests of a process compile its code.
  const warm = Math.ceil(moments / 10)
  return { payouts, balanceSeconds, now: now.slice(warm), asOf: asOf.slice(warm), selected, checkpoint }
}

/** Waits until the projector has made all balances. @returns seconds since the projection had caught up */
const untilBalanced = async (
  { elasticsearch, signal }: Bench,
  { prefix, projector }: RunningProjection,
  wanted: number,
): Promise<number> => {
  const began = performance.now()
  const index = balancesIndexOf(prefix, FIRST_GENERATION)
  for (;;) {
    const { count } = await elasticsearch.call<{ readonly count: number }>('POST', `/${index}/_count`, {})
    if (count >= wanted) return (performance.now() - began) / 1000
    await Promise.race([sleep(BALANCES_INTERVAL_MS, undefined, { signal }), projector.died])
  }
}

/** Ids of payouts at even distances, in another order. */
const idsOf = (dataset: Dataset, payouts: number, moments: number): string[] => {
  const ids: string[] = []
  let seen = 0
  for (const { data } of dataset.payouts()) if (seen++ % Math.ceil(payouts / moments) === 0) ids.push(data.id)
  return createDatasetRandom('moments')
    .shuffle(ids.map((_, at) => at))
    .map(at => ids[at] ?? '')
}

const measureNow = async (
  bench: Bench,
  topics: Topics,
  api: RunningApi,
  key: string,
  { organizations: [organization] }: Dataset,
  payouts: number,
): Promise<number[]> => {
  if (organization === undefined) throw new Error('there is no organization')
  const { moments, shape, recalculated } = bench.sizes.totals
  const random = createDatasetRandom('new payouts')
  const times: number[] = []
  // Recalculations left the last pairs of rep and period free.
  let pair = organization.reps.length * organization.periods.length
  const newPayout = () => payoutOf(organization, --pair, null, shape, random)
  // A request costs what was published since the last balance: all together cover the distance of two balances.
  const free = Math.floor((payouts * recalculated) / moments)
  const together = Math.min(Math.ceil(CHANGES / moments), free)
  for (let request = 0; request < moments; request++) {
    for (let before = 1; before < together; before++) await publishPayout(topics, newPayout())
    const data = newPayout()
    const publish = () => publishPayout(topics, data)
    await measureTimeToVisible(bench, api, key, data.id, publish)
    times.push(await timeRequest(api, key, '/totals'))
  }
  return times
}

const figureOfTotals = (stages: readonly Stage[]): Figure => {
  const [smallest, largest] = [stages[0], stages.at(-1)]
  if (smallest === undefined || largest === undefined) throw new Error('nothing was measured')
  const rowsOf = (stage: Stage): FigureRow[] => {
    const size = stage.payouts.toLocaleString('en-US')
    const bound = stage === largest ? { atMost: P99_MAX } : {}
    const all: FigureRow[] = [
      { what: `${size}: all balances are made, after the replay`, unit: 's', value: stage.balanceSeconds },
      { what: `${size}: totals now, p50`, unit: 'ms', value: percentile(stage.now, 50) },
      { what: `${size}: totals now, p99`, unit: 'ms', value: percentile(stage.now, 99), ...bound },
      { what: `${size}: totals as of a change, p50`, unit: 'ms', value: percentile(stage.asOf, 50) },
      { what: `${size}: totals as of a change, p99`, unit: 'ms', value: percentile(stage.asOf, 99), ...bound },
    ]
    const selected = rowsOfSelected(size, stage.selected, stage === largest)
    return [...all, ...selected, ...rowsOfCheckpoint(size, stage.checkpoint)]
  }
  const ratio = (what: 'now' | 'asOf', name: string): FigureRow => ({
    key: `${name}, largest / smallest`,
    what: `${name}, p50: ${largest.payouts.toLocaleString('en-US')} / ${smallest.payouts.toLocaleString('en-US')}`,
    unit: '',
    value: percentile(largest[what], 50) / percentile(smallest[what], 50),
    isRatio: true,
    atMost: RATIO_MAX,
  })
  return {
    name: 'totals',
    title: 'Totals of one organization',
    rows: [...stages.flatMap(rowsOf), ratio('now', 'totals now'), ratio('asOf', 'totals as of a change')],
    notes: [
      'One organization, in one partition; a tenth of the payouts replace another one. Each request is about another moment, so that no sum is remembered: as of payouts of all times, and now, each time after new payouts: a request costs what was published since the last balance, so all requests together cover the thousand changes between two balances. A tenth of the requests go before and are not counted.',
      SELECTED_NOTE,
    ],
  }
}
