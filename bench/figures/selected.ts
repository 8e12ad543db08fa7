/**
 * Reads that select records of a large organization, each beside a page of as many records that selects none: payouts
 * of a deal, and payouts by id. Then totals of a rep and of a deal, each as of another moment: nothing is cached.
 */
import {
  authorization,
  type PayoutsPage,
  type RunningApi,
  readApi,
  timeRequest,
  walkPayouts,
} from '../processes/api-process.ts'
import type { Bench, FigureRow } from '../rig/bench.ts'
import { applyLoad } from '../rig/load.ts'
import { percentile, spreadOf } from '../rig/statistics.ts'
import { PAGE } from './pages.ts'

/** Different requests of a kind, asked in turn. */
const REQUESTS = 20
/** The most ids of one request, and the records of a page of a deal. */
const BY_IDS = 100
const OF_DEAL = 50
const PAGE_RATIO_MAX = 1.5

/** Milliseconds, the median of each round. */
type Round = {
  readonly ofDeal: number
  readonly asManyAsOfDeal: number
  readonly byIds: number
  readonly asManyAsByIds: number
}
/** `totalsOfRep`, `totalsOfDeal`: milliseconds of each request. */
export type Selected = {
  readonly rounds: readonly Round[]
  readonly totalsOfRep: readonly number[]
  readonly totalsOfDeal: readonly number[]
}

/** @param moments ids of changes: one for each request of totals */
export const measureSelected = async (
  bench: Bench,
  api: RunningApi,
  key: string,
  reps: readonly string[],
  moments: readonly string[],
): Promise<Selected> => {
  const pages = (await walkPayouts(api.url, key, PAGE, bench.signal)).slice(0, -1)
  // Neighbours on a page lie side by side in the index. The ids of one request come from all parts of it.
  const spread = Array.from({ length: BY_IDS }, (_, at) => pages[Math.floor((at * pages.length) / BY_IDS)])
  const idsOf = (request: number) => new Set(spread.flatMap(page => page?.ids[request] ?? []))
  const middle = pages.slice(Math.floor(pages.length / 2), Math.floor(pages.length / 2) + REQUESTS)
  const inTurn = Array.from({ length: REQUESTS }, (_, at) => at)
  const { data } = await readApi<PayoutsPage>(`${api.url}${middle[0]?.path}`, key)
  const deals = data.flatMap(({ line_items }) => line_items[0]?.deal_id ?? [])
  const paths = {
    ofDeal: inTurn.map(at => `/payouts?limit=${OF_DEAL}&deal_id=${deals[at]}`),
    asManyAsOfDeal: middle.map(({ path }) => path.replace(`limit=${PAGE}`, `limit=${OF_DEAL}`)),
    byIds: inTurn.map(at => `/payouts?ids=${[...idsOf(at)].join()}`),
    asManyAsByIds: middle.map(({ path }) => path.replace(`limit=${PAGE}`, `limit=${BY_IDS}`)),
  }
  const { rounds, secondsPerRound } = bench.sizes.totals.pages
  const p50 = async (asked: readonly string[]): Promise<number> => {
    const requests = asked.map(path => ({ url: `${api.url}${path}`, method: 'GET', headers: authorization(key) }))
    const milliseconds = secondsPerRound * 1000
    return (await applyLoad({ requests, connections: 1, milliseconds, signal: bench.signal })).p50
  }
  const measure = async (): Promise<Round> => ({
    ofDeal: await p50(paths.ofDeal),
    asManyAsOfDeal: await p50(paths.asManyAsOfDeal),
    byIds: await p50(paths.byIds),
    asManyAsByIds: await p50(paths.asManyAsByIds),
  })
  // Not counted: warms the API up.
  await measure()
  const measured: Round[] = []
  for (let round = 0; round < rounds; round++) measured.push(await measure())
  const times = async (filterOf: (at: number) => string): Promise<number[]> => {
    const taken: number[] = []
    for (const [at, moment] of moments.entries())
      taken.push(await timeRequest(api, key, `/totals?as_of=${moment}&${filterOf(at)}`))
    return taken
  }
  const totalsOfRep = await times(at => `rep_id=${reps[at % reps.length]}`)
  const totalsOfDeal = await times(at => `deal_id=${deals[at % deals.length]}`)
  return { rounds: measured, totalsOfRep, totalsOfDeal }
}

/** @param isLargest whether its ratios have a bound */
export const rowsOfSelected = (
  size: string,
  { rounds, totalsOfRep, totalsOfDeal }: Selected,
  isLargest: boolean,
): FigureRow[] => {
  const ratio = (name: string, of: (round: Round) => number): FigureRow => ({
    key: isLargest ? name : `${size}: ${name}`,
    what: `${size}: ${name}`,
    unit: '',
    ...spreadOf(rounds.map(of)),
    isRatio: true,
    ...(isLargest && { atMost: PAGE_RATIO_MAX }),
  })
  const milliseconds = (what: string, times: readonly number[]): FigureRow[] =>
    [50, 99].map(of => ({ what: `${size}: ${what}, p${of}`, unit: 'ms', value: percentile(times, of) }))
  return [
    { what: `${size}: page of ${OF_DEAL} of a deal`, unit: 'ms', ...spreadOf(rounds.map(({ ofDeal }) => ofDeal)) },
    ratio('page of a deal / page of as many records', ({ ofDeal, asManyAsOfDeal }) => ofDeal / asManyAsOfDeal),
    { what: `${size}: ${BY_IDS} by id`, unit: 'ms', ...spreadOf(rounds.map(({ byIds }) => byIds)) },
    ratio('records by id / page of as many records', ({ byIds, asManyAsByIds }) => byIds / asManyAsByIds),
    ...milliseconds('totals of a rep as of a change', totalsOfRep),
    ...milliseconds('totals of a deal as of a change', totalsOfDeal),
  ]
}

export const SELECTED_NOTE = [
  `The ids of one request come from all parts of the list. A deal has lines in 100 payouts in the mean, a rep 24 payouts.`,
  'Pages are requested in turn over one connection; the rounds of all kinds alternate.',
].join(' ')
