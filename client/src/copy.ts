/**
 * A copy of an organization that proves itself: its records add up to the totals of the API as of the same change.
 *
 *   const copy = await readCopy(client)
 *   await copy.update()   // applies the changes since; `follow` continues for ever
 *   await copy.prove()    // throws if an amount or a count differs
 */
import { Decimal } from 'decimal.js'
import type { Change, Client, Payout, PayrollRecord, Period, Rep, Total } from './client.ts'

/** A copy as JSON. Store it, and continue with `continueCopy`. */
export type CopyState = {
  /** The last change that the copy includes; null while the organization has none. */
  readonly lastChangeId: string | null
  readonly reps: readonly Rep[]
  readonly periods: readonly Period[]
  readonly payouts: readonly Payout[]
  readonly payrollRecords: readonly PayrollRecord[]
}

export type Copy = {
  readonly lastChangeId: () => string | null
  readonly reps: ReadonlyMap<string, Rep>
  readonly periods: ReadonlyMap<string, Period>
  /** Current payouts only. */
  readonly payouts: ReadonlyMap<string, Payout>
  readonly payrollRecords: ReadonlyMap<string, PayrollRecord>
  /**
   * Reads the changes since and applies each. `onChange` is called, and awaited, after a change is applied. Returns
   * their number. A copy has one `update` or `follow` at a time. If two run, one of them throws.
   */
  readonly update: (onChange?: (change: Change) => void | Promise<void>) => Promise<number>
  /** Applies every change as it comes, for ever, and yields it. */
  readonly follow: () => AsyncIterable<Change>
  /** Amounts owed, paid and open, by period and currency, as the copy adds them up. */
  readonly totals: () => Total[]
  /** @throws CopyDiffersError unless the totals are those of the API as of the last change */
  readonly prove: () => Promise<void>
  readonly state: () => CopyState
}

/** A copy differs from the API. The message names the period, the currency and the field of the first difference. */
export class CopyDiffersError extends Error {
  override name = 'CopyDiffersError'
}

/** Reads an organization as of its last change, and proves the copy. */
export const readCopy = async (client: Client): Promise<Copy> => {
  const { last_change_id } = await client.totals()
  if (last_change_id === null) return continueCopy(client, EMPTY)
  const then = client.asOf(last_change_id)
  const copy = continueCopy(client, {
    lastChangeId: last_change_id,
    reps: await all(then.reps()),
    periods: await all(then.periods()),
    payouts: await all(then.payouts()),
    payrollRecords: await all(then.payrollRecords()),
  })
  await copy.prove()
  return copy
}

/** Continues a copy from its stored state. */
export const continueCopy = (client: Client, state: CopyState): Copy => {
  let { lastChangeId } = state
  const reps = byId(state.reps)
  const periods = byId(state.periods)
  const payouts = byId(state.payouts)
  const payrollRecords = byId(state.payrollRecords)

  const apply = (change: Change): void => {
    if (change.kind === 'reps') reps.set(change.record.id, change.record)
    else if (change.kind === 'periods') periods.set(change.record.id, change.record)
    else if (change.kind === 'payroll_files') payrollRecords.set(change.record.id, change.record)
    else {
      if (change.supersedes_id !== null) payouts.delete(change.supersedes_id)
      payouts.set(change.record.id, change.record)
    }
    lastChangeId = change.id
  }
  /** Applies changes that follow the last one, and yields them. */
  const applying = async function* (read: Client['changes'] | Client['follow']) {
    let before = lastChangeId
    for await (const change of read({ startingAfter: before })) {
      // A change that is applied after later ones would make replaced records current again.
      if (lastChangeId !== before) throw new Error('another update or follow has applied changes to this copy')
      apply(change)
      before = change.id
      yield change
    }
  }
  const totals = (): Total[] => add(payouts.values(), payrollRecords.values())

  return {
    lastChangeId: () => lastChangeId,
    reps,
    periods,
    payouts,
    payrollRecords,
    totals,
    update: async onChange => {
      let count = 0
      for await (const change of applying(client.changes)) {
        count++
        await onChange?.(change)
      }
      return count
    },
    follow: () => applying(client.follow),
    prove: async () => {
      // Nothing was ever published: there is no moment to compare at.
      if (lastChangeId === null) return
      // Changes may be applied while the totals are read.
      const [at, ours] = [lastChangeId, totals()]
      const expected = (await client.asOf(at).totals()).totals
      const difference = firstDifference(expected, ours)
      if (difference !== undefined) throw new CopyDiffersError(`as of ${at}, ${difference}`)
    },
    state: () => ({
      lastChangeId,
      reps: [...reps.values()],
      periods: [...periods.values()],
      payouts: [...payouts.values()],
      payrollRecords: [...payrollRecords.values()],
    }),
  }
}

const EMPTY: CopyState = { lastChangeId: null, reps: [], periods: [], payouts: [], payrollRecords: [] }

const all = async <Item>(list: AsyncIterable<Item>): Promise<Item[]> => {
  const items: Item[] = []
  for await (const item of list) items.push(item)
  return items
}

const byId = <Item extends { readonly id: string }>(items: readonly Item[]): Map<string, Item> =>
  new Map(items.map(item => [item.id, item]))

/** Adds exactly: an amount has at most 40 digits before the point and 40 after it. */
const Exact = Decimal.clone({ precision: 200, toExpPos: 200, toExpNeg: -200 })
type Sum = { owed: Decimal; owedCount: number; paid: Decimal; paidCount: number }

const add = (payouts: Iterable<Payout>, payrollRecords: Iterable<PayrollRecord>): Total[] => {
  const sums = new Map<string, Sum>()
  const sumOf = ({ period_id, currency }: Pick<Total, 'period_id' | 'currency'>): Sum => {
    const group = `${period_id} ${currency}`
    const sum = sums.get(group) ?? { owed: new Exact(0), owedCount: 0, paid: new Exact(0), paidCount: 0 }
    sums.set(group, sum)
    return sum
  }
  for (const payout of payouts) {
    const sum = sumOf(payout)
    sum.owed = sum.owed.plus(payout.net_amount)
    sum.owedCount++
  }
  for (const record of payrollRecords) {
    const sum = sumOf(record)
    sum.paid = sum.paid.plus(record.amount)
    sum.paidCount++
  }
  return [...sums].map(([group, { owed, owedCount, paid, paidCount }]) => {
    const [period_id = '', currency = ''] = group.split(' ')
    const open_amount = owed.minus(paid).toFixed()
    const amounts = { owed_amount: owed.toFixed(), paid_amount: paid.toFixed(), open_amount }
    return { period_id, currency, owed_count: owedCount, paid_count: paidCount, ...amounts }
  })
}

/** What is open follows from them. */
const fields = ['owed_amount', 'owed_count', 'paid_amount', 'paid_count'] as const

/** Returns the first total that differs, in words; undefined if none does. */
const firstDifference = (expected: readonly Total[], got: readonly Total[]): string | undefined => {
  const groupOf = ({ period_id, currency }: Total): string => `${period_id} in ${currency}`
  const [wanted, found] = [expected, got].map(totals => new Map(totals.map(total => [groupOf(total), total])))
  for (const group of new Set([...(wanted?.keys() ?? []), ...(found?.keys() ?? [])])) {
    for (const field of fields) {
      const [theirs, ours] = [wanted?.get(group)?.[field] ?? 0, found?.get(group)?.[field] ?? 0]
      if (!new Exact(theirs).eq(ours)) return `${group}: ${field} is ${theirs}, in the copy ${ours}`
    }
  }
  return undefined
}
