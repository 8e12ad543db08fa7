/**
 * Times of pages at the beginning, in the middle and at the end of a long walk and of pages of one rep, and the time
 * until a payout is visible.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { authorization, type PayoutsPage, type RunningApi, readApi, walkPayouts } from '../processes/api-process.ts'
import type { Bench } from '../rig/bench.ts'
import { applyLoad } from '../rig/load.ts'

/** Records of a page, and pages of each sample that are requested in turn. */
export const PAGE = 200
const PAGES = 20
/** Milliseconds between two requests for a payout, and after which a missing payout is an error. */
const POLL_MS = 2
const VISIBLE_TIMEOUT_MS = 10_000

/** Milliseconds of a page, median of one round. `asMany`: a page in the middle with as many records as `ofRep`. */
export type PageTimes = {
  readonly beginning: number
  readonly middle: number
  readonly end: number
  readonly ofRep: number
  readonly asMany: number
}
export type Walk = { readonly pages: number; readonly seconds: number; readonly rounds: readonly PageTimes[] }

/** Walks all payouts of the key's organization. Then requests pages of three samples again, in rounds. */
export const measurePages = async (
  bench: Bench,
  api: RunningApi,
  key: string,
  reps: readonly string[],
): Promise<Walk> => {
  const { rounds, secondsPerRound } = bench.sizes.growth.pages
  const began = performance.now()
  const paths = (await walkPayouts(api.url, key, PAGE, bench.signal)).map(({ path }) => path)
  const seconds = (performance.now() - began) / 1000

  // The last page is shorter.
  const full = paths.slice(0, -1)
  const count = Math.min(PAGES, Math.floor(full.length / 3))
  if (count === 0) throw new Error('a walk of three full pages is needed')
  const middle = Math.floor((full.length - count) / 2)
  const ofReps = reps.slice(0, PAGES).map(rep => `/payouts?limit=${PAGE}&rep_id=${rep}`)
  const { data } = await readApi<PayoutsPage>(`${api.url}${ofReps[0]}`, key)
  const samples = {
    ofRep: ofReps,
    asMany: full.slice(middle, middle + count).map(path => path.replace(`limit=${PAGE}`, `limit=${data.length}`)),
    beginning: full.slice(0, count),
    middle: full.slice(middle, middle + count),
    end: full.slice(-count),
  }
  const p50 = async (asked: readonly string[]): Promise<number> => {
    const requests = asked.map(path => ({ url: `${api.url}${path}`, method: 'GET', headers: authorization(key) }))
    const milliseconds = secondsPerRound * 1000
    return (await applyLoad({ requests, connections: 1, milliseconds, signal: bench.signal })).p50
  }
  const measure = async (): Promise<PageTimes> => ({
    beginning: await p50(samples.beginning),
    middle: await p50(samples.middle),
    end: await p50(samples.end),
    ofRep: await p50(samples.ofRep),
    asMany: await p50(samples.asMany),
  })
  // Not counted: warms the API up.
  await measure()
  const measured: PageTimes[] = []
  for (let round = 0; round < rounds; round++) measured.push(await measure())
  return { pages: paths.length, seconds, rounds: measured }
}

/** @returns milliseconds from publishing until the API returns the payout */
export const measureTimeToVisible = async (
  { signal }: Bench,
  api: RunningApi,
  key: string,
  id: string,
  publish: () => Promise<void>,
): Promise<number> => {
  const began = performance.now()
  await publish()
  for (;;) {
    const answer = await fetch(`${api.url}/payouts/${id}`, { headers: authorization(key), signal })
    await answer.arrayBuffer()
    const milliseconds = performance.now() - began
    if (answer.status === 200) return milliseconds
    if (answer.status !== 404 && answer.status !== 503) throw new Error(`the API answers ${answer.status} to a payout`)
    if (milliseconds > VISIBLE_TIMEOUT_MS)
      throw new Error(`a payout is not visible ${VISIBLE_TIMEOUT_MS / 1000} s after it was published`)
    await sleep(POLL_MS, undefined, { signal })
  }
}
