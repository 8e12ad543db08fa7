/** The instants of records that the page orders them by. */
import type { Payout, Period } from '../../../client/src/index.ts'

/** When a payout was calculated, or recorded if nothing was calculated. */
export const payoutInstant = ({ calculated_at, recorded_at }: Pick<Payout, 'calculated_at' | 'recorded_at'>): string =>
  calculated_at ?? recorded_at ?? ''

/** Only to order them: instants have offsets. */
export const beginOf = ({ starts_at }: Period): number => Date.parse(starts_at)

export const latestFirst = (periods: readonly Period[]): Period[] =>
  periods.toSorted((one, other) => beginOf(other) - beginOf(one))

/** An instant as it was published, easier to read: `2026-02-01 08:30:00 UTC`. The id of a change stays as it is. */
export const instantText = (moment: string): string =>
  /^\d{4}-\d\d-\d\dT/.test(moment)
    ? moment
        .replace('T', ' ')
        .replace(/Z$/, ' UTC')
        .replace(/([+-]\d\d:\d\d)$/, ' $1')
    : moment
