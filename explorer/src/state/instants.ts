/** The instants of records that the page orders them by. */
import type { Payout, Period } from '../../../client/src/index.ts'

/** When a payout was calculated, or recorded if nothing was calculated. */
export const payoutInstant = ({ calculated_at, recorded_at }: Pick<Payout, 'calculated_at' | 'recorded_at'>): string =>
  calculated_at ?? recorded_at ?? ''

/** Only to order them: instants have offsets. */
export const beginOf = ({ starts_at }: Period): number => Date.parse(starts_at)

export const latestFirst = (periods: readonly Period[]): Period[] =>
  periods.toSorted((one, other) => beginOf(other) - beginOf(one))

/**
 * Returns items with the latest period first; those of one period stay in the order of the API.
 * Undefined if a period is not known: then nobody knows the order.
 */
export const latestPeriodFirst = <Item extends { readonly period_id: string }>(
  items: readonly Item[],
  periods: ReadonlyMap<string, Period>,
): Item[] | undefined => {
  if (items.some(({ period_id }) => !periods.has(period_id))) return undefined
  const ranks = new Map(latestFirst([...periods.values()]).map(({ id }, at) => [id, at]))
  const rankOf = ({ period_id }: Item): number => ranks.get(period_id) ?? ranks.size
  return items.toSorted((one, other) => rankOf(one) - rankOf(other))
}

/**
 * Returns the moment of which a list since `since` has what was published at that instant, too: a millisecond before,
 * as times of records are whole milliseconds. A change stays as it is, and so does a text that the API refuses.
 */
export const momentBefore = (since: string): string => {
  const [, date = '', parts = ''] = /^(\d{4}-\d\d-\d\d)T[^.]*(?:\.\d{0,3}(\d*))?/.exec(since) ?? []
  // The JSON of an invalid date is null.
  const begin = new Date(`${date}T00:00:00Z`).toJSON() as string | null
  const before = new Date(Date.parse(since) - 1).toJSON() as string | null
  // A date such as 2026-02-30 becomes another one, and the API leaves out parts of a millisecond.
  const isExact = begin?.startsWith(date) && !/[1-9]/.test(parts)
  return isExact && before !== null ? before : since
}

/** An instant as it was published, easier to read: `2026-02-01 08:30:00 UTC`. The id of a change stays as it is. */
export const instantText = (moment: string): string =>
  /^\d{4}-\d\d-\d\dT/.test(moment)
    ? moment
        .replace('T', ' ')
        .replace(/Z$/, ' UTC')
        .replace(/([+-]\d\d:\d\d)$/, ' $1')
    : moment
