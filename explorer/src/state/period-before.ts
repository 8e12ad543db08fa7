/** The payout of the same rep for the period before: the one that a person compares a payout with. */
import type { Payout, Period } from '../../../client/src/index.ts'
import { beginOf } from './instants.ts'

/**
 * @param payouts those of the rep
 * @returns the payout for the latest earlier period of the same kind: the month before a month, or an earlier month, if
 * the rep has no payout for that one. Undefined without one, and if the period is not known.
 */
export const payoutBefore = (
  { period_id }: Payout,
  payouts: readonly Payout[],
  periods: ReadonlyMap<string, Period>,
): Payout | undefined => {
  const period = periods.get(period_id)
  if (period === undefined) return undefined
  const earlier = payouts.flatMap(payout => {
    const other = periods.get(payout.period_id)
    const isEarlier = other !== undefined && other.kind === period.kind && beginOf(other) < beginOf(period)
    return isEarlier ? [{ payout, begin: beginOf(other) }] : []
  })
  return earlier.toSorted((one, other) => other.begin - one.begin).at(0)?.payout
}
