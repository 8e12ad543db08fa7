/**
 * The latest corrections: payouts that replaced another one, each with the amount before. The API lists changes from
 * the first one on, so the latest are found by time: the changes of the last minute, then of ever longer times before.
 * Where there are too many of them at once, those of the newest periods stand in.
 */
import { type Change, type Client, type Payout, RefusedError } from '../../../client/src/index.ts'
import { latestFirst, payoutInstant } from './instants.ts'

type PayoutChange = Extract<Change, { readonly kind: 'payouts' }>

export type Correction = {
  /** The id of the payout and of the change. */
  readonly id: string
  readonly after: Payout
  /** The payout that it replaced. */
  readonly before: Payout
}

export type Corrections = {
  /** Newest first. If it is partial, the last ones can be current payouts of the newest periods. */
  readonly found: readonly Correction[]
  /** Whether there are too many changes to look at all: then older corrections can be missing. */
  readonly isPartial: boolean
}

const CORRECTIONS_MAX = 5
/** Seconds: an instant must be over, half a minute old. And the longest window: a century. */
const FIRST_WINDOW = 60
const LAST_WINDOW = 3_155_760_000
const GROWTH = 16
/** Windows that are read: a few that grow, and those that are narrowed. */
const WINDOWS_MAX = 14
/** A window with more changes than a page has is narrowed. */
const CHANGES_MAX = 200

/** @returns a function that reads the corrections of a client, the first time all of them, later only the new ones */
export const createCorrections = (
  client: Client,
  asOf: string | undefined,
): ((latest: readonly Change[]) => Promise<Corrections>) => {
  let known: Corrections | undefined
  return async latest => {
    known ??= await search(client, asOf)
    const { found, isPartial } = known
    const fresh = replacing(latest).filter(({ id }) => !found.some(correction => correction.id === id))
    const records = fresh.slice(0, CORRECTIONS_MAX).map(({ record }) => record)
    const all = [...(await withBefore(client, records)), ...found]
    known = { found: all.slice(0, CORRECTIONS_MAX), isPartial: isPartial && all.length < CORRECTIONS_MAX }
    return known
  }
}

const replacing = (changes: readonly Change[]): PayoutChange[] =>
  changes.flatMap(change => (change.kind === 'payouts' && change.supersedes_id !== null ? [change] : []))

const withBefore = async (client: Client, corrected: readonly Payout[]): Promise<Correction[]> => {
  const ids = corrected.flatMap(({ supersedes_id }) => supersedes_id ?? [])
  const replaced = ids.length === 0 ? [] : await Array.fromAsync(client.payouts({ ids }))
  const byId = new Map(replaced.map(payout => [payout.id, payout]))
  return corrected.flatMap(after => {
    const before = byId.get(after.supersedes_id ?? '')
    return before === undefined ? [] : [{ id: after.id, after, before }]
  })
}

const PERIODS_LOOKED_AT = 6
/** Of one period. */
const PAYOUTS_LOOKED_AT = 1_000

/** Payouts of the newest periods that replaced another one, the latest first. None if the key may not read periods. */
const ofNewestPeriods = async (client: Client): Promise<Payout[]> => {
  const corrected: Payout[] = []
  try {
    const periods = latestFirst(await Array.fromAsync(client.periods()))
    for (const { id } of periods.slice(0, PERIODS_LOOKED_AT)) {
      if (corrected.length >= CORRECTIONS_MAX) break
      let looked = 0
      for await (const payout of client.payouts({ periodId: id })) {
        if (payout.supersedes_id !== null) corrected.push(payout)
        if (++looked >= PAYOUTS_LOOKED_AT) break
      }
    }
  } catch (error) {
    if (!(error instanceof RefusedError && error.status === 403)) throw error
  }
  return corrected.toSorted((one, other) => Date.parse(payoutInstant(other)) - Date.parse(payoutInstant(one)))
}

/** The last change before a window; null if the window begins before the first one. */
type Before = string | null

const search = async (client: Client, asOf: string | undefined): Promise<Corrections> => {
  const end = await endOf(client, asOf)
  const newestFirst: PayoutChange[] = []
  // The longest window that was read, in seconds, and the shortest one with too many changes.
  let done = 0
  let tooLong: number | undefined
  let seen: Before | undefined
  let isPartial = true
  for (let windows = 0; windows < WINDOWS_MAX; windows++) {
    if (newestFirst.length >= CORRECTIONS_MAX || !isPartial || done >= LAST_WINDOW) break
    const width = nextWidth(done, tooLong)
    const window = await readWindow(client, new Date(end - 1_000 * width).toISOString(), seen)
    if (window === 'too long') tooLong = width
    else done = width
    if (typeof window === 'string') continue
    newestFirst.push(...replacing(window.changes).toReversed())
    seen = window.before
    isPartial = seen !== null
  }
  const found = newestFirst.map(({ record }) => record)
  const isMissing = isPartial && found.length < CORRECTIONS_MAX
  if (isMissing) {
    const known = new Set(found.map(({ id }) => id))
    found.push(...(await ofNewestPeriods(client)).filter(({ id }) => !known.has(id)))
  }
  return { found: await withBefore(client, found.slice(0, CORRECTIONS_MAX)), isPartial: isMissing }
}

const nextWidth = (done: number, tooLong: number | undefined): number => {
  if (tooLong !== undefined) return tooLong > 4 * done && done > 0 ? Math.sqrt(done * tooLong) : (done + tooLong) / 2
  return done === 0 ? FIRST_WINDOW : Math.min(GROWTH * done, LAST_WINDOW)
}

/** The instant of the page in milliseconds. That of a change is not known: a window after it is refused. */
const endOf = async (client: Client, asOf: string | undefined): Promise<number> => {
  const instant = /^\d{4}-/.test(asOf ?? '') ? Date.parse(asOf ?? '') : 0
  if (instant > 0) return instant
  for await (const { projectionTime } of client.changes({ limit: 1 }).pages()) return Date.parse(projectionTime)
  return 0
}

/** The changes from an instant on, up to the last one that was not seen yet. */
const readWindow = async (
  client: Client,
  begin: string,
  seen: Before | undefined,
): Promise<'refused' | 'too long' | { readonly changes: readonly Change[]; readonly before: Before }> => {
  try {
    const before = (await client.asOf(begin).totals()).last_change_id
    if (before !== null && before === seen) return { changes: [], before }
    for await (const { data, hasMore } of client.changes({ startingAfter: before, limit: CHANGES_MAX }).pages()) {
      const last = data.findIndex(({ id }) => id === seen)
      if (last === -1 && hasMore) return 'too long'
      return { changes: last === -1 ? data : data.slice(0, last + 1), before }
    }
    return { changes: [], before }
  } catch (error) {
    // The window begins after the moment of the page, or at an instant about which nothing is known.
    if (error instanceof RefusedError && error.status === 400) return 'refused'
    throw error
  }
}
