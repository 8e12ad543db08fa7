/** The instants of records that the page orders them by. */
import type { Payout, Period } from '../../../client/src/index.ts'

/** When a payout was calculated, or recorded if nothing was calculated. */
export const payoutInstant = ({ calculated_at, recorded_at }: Pick<Payout, 'calculated_at' | 'recorded_at'>): string =>
  calculated_at ?? recorded_at ?? ''

/** Only to order them: instants have offsets. */
const begin = ({ starts_at }: Period): number => Date.parse(starts_at)

export const latestFirst = (periods: readonly Period[]): Period[] =>
  periods.toSorted((one, other) => begin(other) - begin(one))
