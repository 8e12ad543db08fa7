/** The payout of the same rep for the period before: the one that a person compares a payout with. */
import type { Payout, Period } from '../../../client/src/index.ts'
import { beginOf, latestPeriodFirst } from './instants.ts'

/**
 * @param payouts those of the rep
 * @returns the payout for the latest earlier period of the same kind: the month before a month, or an earlier month, if
 * the rep has no payout for that one. Undefined without one. `unknown` if the period of any of them is not known.
 */
export const payoutBefore = (
  payout: Payout,
  payouts: readonly Payout[],
  periods: ReadonlyMap<string, Period>,
): Payout | 'unknown' | undefined => {
  const period = periods.get(payout.period_id)
  const ordered = latestPeriodFirst(payouts, periods)
  if (period === undefined || ordered === undefined) return 'unknown'
  return ordered.find(({ period_id }) => {
    const other = periods.get(period_id)
    return other !== undefined && other.kind === period.kind && beginOf(other) < beginOf(period)
  })
}
