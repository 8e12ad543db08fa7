/**
 * Clients that walk lists continuously during faults, retry after a 503 or no answer, and are compared with the model
 * afterwards.
 */
import { expect } from 'vitest'
import type { List, Page } from './client.ts'
import { requireDescribed } from './described.ts'
import { LATE } from './in-time.ts'
import type { Item, Model } from './model.ts'
import { type Api, reasonsUnavailable } from './processes.ts'
import type { Random } from './random.ts'
import { eventually } from './scope.ts'

/** A walk: its pages, and of payouts the whole list just before and just after it. */
type Walk = {
  readonly org: string
  readonly list: List
  readonly before: readonly Item[]
  readonly pages: readonly Page[]
  readonly after: readonly Item[]
}

export type Walked = {
  readonly walks: readonly Walk[]
  readonly pages: number
  readonly unavailable: number
  /** Answers that no client may ever get: another status, an incomplete body with 200, a time that goes back. */
  readonly wrong: readonly string[]
}

export type Walkers = {
  readonly stop: () => Promise<Walked>
  /** Returns the results so far, with the walks that have ended. */
  readonly soFar: () => Walked
}

type Options = {
  /** Returns the current API processes. Walkers use them in turn. */
  readonly apis: () => readonly { readonly url: string }[]
  /** The text of an API key of each organization. */
  readonly keys: ReadonlyMap<string, string>
  readonly random: Random
  readonly walkers?: number
  /** Milliseconds between two pages of one walker. */
  readonly every?: number
}

const LISTS: readonly List[] = ['payouts', 'payouts', 'payouts', 'payroll_files', 'reps', 'periods']
const WHOLE = 200

export const startWalkers = ({ apis, keys, random, walkers = 3, every = 20 }: Options): Walkers => {
  const walks: Walk[] = []
  const wrong: string[] = []
  let [pages, unavailable, turn] = [0, 0, 0]
  let walking = true
  const began = performance.now()
  const refused = (what: string): void => {
    wrong.push(`${((performance.now() - began) / 1_000).toFixed(1)} s: ${what}`)
  }

  /** Retries until it gets a page. */
  const read = async (org: string, path: string, times: Map<string, string>): Promise<Page> => {
    for (;;) {
      const all = apis()
      const url = all[turn++ % all.length]?.url ?? ''
      const answer = await ask(`${url}${path}`, keys.get(org) ?? '')
      if (answer !== undefined) {
        const asked = { method: 'GET', path: `/api/v1${path}`, headers: { authorization: 'Bearer' } }
        await requireDescribed(asked, answer).catch((error: unknown) => refused(String(error)))
      }
      if (answer === undefined) await pause(Math.max(every, 50))
      else if (answer.status === 503) {
        unavailable++
        if (!answer.text.includes('"unavailable"') || !answer.retryAfter) refused(`503 to ${path}: ${answer.text}`)
        await pause(Math.max(every, 50))
      } else if (answer.status !== 200) {
        refused(`${answer.status} to ${path}: ${answer.text}`)
        await pause(Math.max(every, 50))
      } else {
        pages++
        const asked = `${url} ${org}`
        if (answer.time < (times.get(asked) ?? '')) refused(`${path}: time ${times.get(asked)}, then ${answer.time}`)
        times.set(asked, answer.time)
        await pause(every)
        return JSON.parse(answer.text) as Page
      }
    }
  }
  const walk = async (org: string, list: List, limit: number, times: Map<string, string>): Promise<void> => {
    // Only payouts can leave their list. They are few enough for one page.
    const whole = async () => (list === 'payouts' ? (await read(org, `/payouts?limit=${WHOLE}`, times)).data : [])
    const before = await whole()
    const seen: Page[] = []
    for (let cursor = '', more = true; more; ) {
      const page = await read(org, `/${list}?limit=${limit}${cursor && `&starting_after=${cursor}`}`, times)
      seen.push(page)
      more = page.has_more
      cursor = page.next_cursor
    }
    walks.push({ org, list, before, pages: seen, after: await whole() })
  }
  const walker = async (): Promise<void> => {
    const times = new Map<string, string>()
    while (walking) await walk(random.pick([...keys.keys()]), random.pick(LISTS), random.pick([2, 7, 50]), times)
  }
  const soFar = (): Walked => ({ walks: [...walks], pages, unavailable, wrong: [...wrong] })
  const done = Promise.all(Array.from({ length: walkers }, walker))
  return {
    soFar,
    stop: async () => {
      walking = false
      await done
      return soFar()
    },
  }
}

/**
 * Expects that no answer to walkers was a 503. On a busy machine the time of a request or of its search may be up,
 * seldom: every other reason counts, and an outage would take the time of many.
 */
export const expectServed = async (
  walked: Pick<Walked, 'unavailable' | 'pages'>,
  ...apis: readonly Api[]
): Promise<void> => {
  if (walked.unavailable === 0) return
  const reasons = () => reasonsUnavailable(...apis)
  // A process writes the line of an answer later.
  await eventually(() => expect(reasons().length).toBeGreaterThanOrEqual(walked.unavailable))
  expect(reasons().filter(reason => !LATE.some(late => reason.includes(`: ${late}, `)))).toEqual([])
  expect(walked.unavailable, reasons().join('\n')).toBeLessThanOrEqual(Math.max(5, walked.pages / 50))
}

/**
 * Waits until each API has answered each list once. On a busy machine, the first searches of new processes can take
 * longer than the 3 s of a request: a test that expects no 503 begins after them.
 */
export const untilWarm = async (apis: readonly { readonly url: string }[], key: string): Promise<void> => {
  for (const { url } of apis) {
    for (const list of new Set(LISTS)) {
      await eventually(async () => expect((await ask(`${url}/${list}?limit=2`, key))?.status).toBe(200))
    }
  }
}

/** Returns undefined if the connection fails. */
const ask = async (url: string, key: string) => {
  try {
    const answer = await fetch(url, { headers: { authorization: `Bearer ${key}` } })
    const { status, headers } = answer
    const text = await answer.text()
    return { status, headers, text, retryAfter: headers.get('retry-after'), time: headers.get('projection-time') ?? '' }
  } catch {
    return undefined
  }
}

const pause = (milliseconds: number): Promise<void> => new Promise(resolve => setTimeout(resolve, milliseconds))

const idsOf = (items: readonly Item[]): string[] => items.map(({ id }) => String(id))

/**
 * Expects every walk to agree with the model: no record skipped, repeated, out of order or incomplete, and one payout
 * of each rep and period.
 */
export const expectWalkedAsModelled = ({ walks, wrong }: Walked, model: Model): void => {
  expect(wrong).toEqual([])
  expect(walks.length).toBeGreaterThan(0)
  const views = new Map([...new Set(walks.map(({ org }) => org))].map(org => [org, model.view(org)]))
  for (const { org, list, before, pages, after } of walks) {
    const view = views.get(org)
    const walked = pages.flatMap(({ data }) => data)
    const ids = idsOf(walked)
    if (list !== 'payouts') {
      // No record ever leaves these lists, so a walk is a prefix of the list.
      expect(ids).toEqual(idsOf(view?.[list] ?? []).slice(0, ids.length))
      if (list === 'payroll_files') expect(walked).toEqual(view?.payroll_files.slice(0, ids.length))
      continue
    }
    const every = new Map(view?.everyPayout.map((payout, place) => [String(payout.id), { payout, place }]))
    const places = ids.map(id => every.get(id)?.place ?? -1)
    expect(places).toEqual([...new Set(places)].toSorted((a, b) => a - b))
    for (const item of walked) expect(item).toEqual({ ...every.get(String(item.id))?.payout, superseded_by_id: null })
    const throughout = new Set(idsOf(before)).intersection(new Set(idsOf(after)))
    expect([...throughout].filter(id => !ids.includes(id))).toEqual([])
    for (const data of [before, after, ...pages.map(page => page.data)]) {
      const pairs = data.map(({ rep_id, period_id }) => `${rep_id} ${period_id}`)
      expect(new Set(pairs).size).toBe(pairs.length)
    }
    const pairsOf = (data: readonly Item[]) => new Set(data.map(({ rep_id, period_id }) => `${rep_id} ${period_id}`))
    expect([...pairsOf(before).difference(pairsOf(after))]).toEqual([])
    expect([...pairsOf(before).difference(pairsOf(walked))]).toEqual([])
  }
}
