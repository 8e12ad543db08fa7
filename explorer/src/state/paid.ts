/**
 * In: payouts. Out: the sums that were paid for their reps and periods. The API lists payroll records of a rep, of a
 * period or all of them: the few lists are read that have those of all these payouts. And which payouts are current,
 * and the sums that were paid without one.
 */
import type { Client, Filter, Payout, PayrollRecord } from '../../../client/src/index.ts'
import { addAmounts, isZero } from '../amounts.ts'
import { lacksPermission } from '../refusals.ts'

/** Lists that are read for the payouts of one view. */
const LISTS_MAX = 6
/** Payroll records that are read in these lists: ten requests. */
export const PAYROLL_MAX = 2_000
/** Payouts whose payroll records are read apart if the lists have more records: a request for each of them. */
export const PAYOUTS_MAX = 200

type OfPayout = Pick<Payout, 'rep_id' | 'period_id' | 'currency'>

/** A sum that was paid for a rep and period that have no payout in this currency. */
export type PaidWithoutPayout = OfPayout & {
  /** Of the payment. */
  readonly id: string
  readonly paid: string
}

/**
 * `paid` has the sum for a payout, without trailing zeros. `withoutPayout` is undefined until all payouts of a view are
 * read, and if there are more payroll records than are read. `too many`: there are more payouts than are read, too.
 * `refused` and `failed` say why nothing is known.
 */
export type PaidOf =
  | {
      readonly state: 'known'
      readonly paid: (payout: OfPayout) => string
      readonly withoutPayout: readonly PaidWithoutPayout[] | undefined
    }
  | { readonly state: 'too many' }
  | { readonly state: 'refused' | 'failed'; readonly why: unknown }

/** A rep has one current payout for a period. */
const repAndPeriodOf = ({ rep_id, period_id }: Pick<Payout, 'rep_id' | 'period_id'>): string => `${rep_id} ${period_id}`

/**
 * A payout that is replaced during the walk leaves the list, and its replacement comes at the end: the walk may return
 * both, without those between them. The last one of a rep and period is current.
 */
export const currentOf = <Listed extends Pick<Payout, 'rep_id' | 'period_id'>>(
  payouts: readonly Listed[],
): Listed[] => {
  const last = new Map(payouts.map(payout => [repAndPeriodOf(payout), payout]))
  return payouts.filter(payout => last.get(repAndPeriodOf(payout)) === payout)
}

/** Every payroll record of these payouts is in one of the lists. */
export const payrollListsOf = (payouts: readonly OfPayout[], { periodId }: Filter): Filter[] => {
  const reps = new Set(payouts.map(({ rep_id }) => rep_id))
  const periods = new Set(payouts.map(({ period_id }) => period_id))
  // A rep has few payroll records. A period can have as many as there are reps.
  if (reps.size <= LISTS_MAX) return [...reps].map(repId => ({ repId, ...(periodId !== undefined && { periodId }) }))
  return periods.size <= LISTS_MAX ? [...periods].map(id => ({ periodId: id })) : [{}]
}

/**
 * A key that may not read payroll records still reads payouts: a refusal is a result.
 * @param isWhole whether these are all payouts of the filter: then all its payroll records are read
 */
export const readPaid = async (
  client: Client,
  payouts: readonly OfPayout[],
  filter: Filter,
  isWhole = false,
): Promise<PaidOf> => {
  try {
    const all = isWhole ? await readLists(client, [filter]) : undefined
    const records =
      all ?? (await readLists(client, payrollListsOf(payouts, filter))) ?? (await readApart(client, payouts))
    if (records === undefined) return { state: 'too many' }
    return { state: 'known', paid: paidIn(records), withoutPayout: all && paidWithout(currentOf(payouts), all) }
  } catch (why) {
    return { state: lacksPermission(why) ? 'refused' : 'failed', why }
  }
}

/** @returns undefined if the lists have more records than are read */
const readLists = async (client: Client, lists: readonly Filter[]): Promise<PayrollRecord[] | undefined> => {
  const records: PayrollRecord[] = []
  let isWhole = true
  const read = async (list: Filter): Promise<void> => {
    for await (const { data, hasMore } of client.payrollRecords(list).pages()) {
      records.push(...data)
      if (hasMore && records.length >= PAYROLL_MAX) isWhole = false
      if (!isWhole) return
    }
  }
  await Promise.all(lists.map(read))
  return isWhole ? records : undefined
}

/**
 * In a list for each payout. Read again, a list that has not changed costs no unit of the key.
 * @returns undefined if there are more payouts than are read
 */
const readApart = async (client: Client, payouts: readonly OfPayout[]): Promise<PayrollRecord[] | undefined> => {
  const byPlace = new Map(payouts.map(payout => [repAndPeriodOf(payout), payout]))
  if (byPlace.size > PAYOUTS_MAX) return undefined
  const records: PayrollRecord[] = []
  const waiting = byPlace.values()
  const readSome = async (): Promise<void> => {
    for (const { rep_id, period_id } of waiting)
      records.push(...(await Array.fromAsync(client.payrollRecords({ repId: rep_id, periodId: period_id }))))
  }
  await Promise.all(Array.from({ length: LISTS_MAX }, readSome))
  return records
}

/** A payment in another currency than the payout does not count: nothing says how much of the debt it pays. */
export const paidIn = (records: readonly PayrollRecord[]): ((payout: OfPayout) => string) => {
  const byPayout = Map.groupBy(records, keyOf)
  return payout => addAmounts((byPayout.get(keyOf(payout)) ?? []).map(({ amount }) => amount))
}

const paidWithout = (payouts: readonly OfPayout[], records: readonly PayrollRecord[]): PaidWithoutPayout[] => {
  const owed = new Set(payouts.map(keyOf))
  const others = records.filter(record => !owed.has(keyOf(record)))
  return [...Map.groupBy(others, keyOf).values()].flatMap(group => {
    const paid = addAmounts(group.map(({ amount }) => amount))
    // There is one payment at a time: earlier ones are void.
    const last = group.at(-1)
    if (last === undefined || isZero(paid)) return []
    const { id, rep_id, period_id, currency } = last
    return [{ id, rep_id, period_id, currency, paid }]
  })
}
const keyOf = ({ rep_id, period_id, currency }: OfPayout): string => `${rep_id} ${period_id} ${currency}`
