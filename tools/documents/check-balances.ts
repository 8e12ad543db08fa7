/**
 * Counts the sums of balances again, in another way than the projector: from the records themselves, in any order. In:
 * the balances of a generation, and each of its documents once. Out: the balances that are wrong.
 * Promises: a balance is right only if all records up to its change add up to each of its rows, and are as many as its
 *   sequence says. Memory holds the balances, and as many sums again.
 */
import { Exact, textOfSum } from '../../schemas/money.ts'
import { partitionOf } from '../../schemas/partition.ts'
import { type BalanceDocument, isListKind, type Kind } from '../../schemas/stored/documents.ts'
import type { GenerationLayout } from '../../schemas/stored/layout.ts'
import type { Fields } from './as-of.ts'
import type { RetryContext } from './read-retries.ts'
import { scan } from './scan.ts'
import { isAmount } from './sums.ts'

type Sums = Map<string, { amount: Exact; count: number }>
/** `owed` and `paid`, by period and currency: all that the changes between the balance before and this one add. */
type Added = { readonly seq: number; readonly stored: BalanceDocument; readonly sums: Sums; changes: number }

export type WrongBalance = { readonly organization: string; readonly sequence: number }

export class BalanceCheck {
  readonly #balances = new Map<string, Added[]>()

  /** Reads the balances before the positions. @param only of this organization; undefined for all */
  static async of(
    layout: GenerationLayout,
    positions: readonly number[],
    only: string | undefined,
    reading: RetryContext,
  ): Promise<BalanceCheck> {
    const check = new BalanceCheck()
    if (!layout.hasBalances) return check
    const filters = only === undefined ? [] : [{ term: { org_id: only } }]
    const where = { index: layout.indexOf('balances'), routing: undefined, filters, records: [] }
    for await (const { source } of scan<BalanceDocument & Fields>(where, reading)) {
      const { org_id, seq } = source
      if (seq >= (positions[partitionOf(org_id, positions.length)] ?? 0)) continue
      const ofOrganization = check.#balances.get(org_id) ?? []
      check.#balances.set(org_id, ofOrganization)
      ofOrganization.push({ seq, stored: source, sums: new Map(), changes: 0 })
    }
    for (const balances of check.#balances.values()) balances.sort((a, b) => a.seq - b.seq)
    return check
  }

  /** Takes a document as of the positions. */
  add(kind: Kind, org: string, { seq, until_seq, period_id, body = {} }: Fields): void {
    const balances = this.#balances.get(org)
    if (balances === undefined || !isListKind(kind) || typeof seq !== 'number') return
    const since = firstFrom(balances, seq)
    if (since === undefined) return
    since.changes++
    const group = `${period_id} ${body.currency}`
    if (kind === 'payroll_files') addTo(since.sums, `paid ${group}`, String(body.amount), 1)
    if (kind !== 'payouts') return
    addTo(since.sums, `owed ${group}`, String(body.net_amount), 1)
    const replaced = firstFrom(balances, Number(until_seq))
    if (replaced) addTo(replaced.sums, `owed ${group}`, String(body.net_amount), -1)
  }

  wrong(): WrongBalance[] {
    return [...this.#balances].flatMap(([organization, balances]) => {
      const all: Sums = new Map()
      let changes = 0
      return balances.flatMap(({ stored: { sequence, body }, sums, changes: more }) => {
        changes += more
        for (const [key, { amount, count }] of sums) {
          const before = all.get(key) ?? { amount: new Exact(0), count: 0 }
          all.set(key, { amount: before.amount.plus(amount), count: before.count + count })
        }
        return changes === sequence && isSame(body.rows, all) ? [] : [{ organization, sequence }]
      })
    })
  }
}

/** Returns the first balance that includes an event at this offset. */
const firstFrom = (balances: readonly Added[], seq: number): Added | undefined => {
  let [from, to] = [0, balances.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if ((balances[middle]?.seq ?? 0) < seq) from = middle + 1
    else to = middle
  }
  return balances[from]
}

/** A text that is no amount makes every balance wrong that includes it. */
const addTo = (sums: Sums, key: string, text: string, sign: 1 | -1): void => {
  const amount = isAmount(text) ? text : Number.NaN
  const before = sums.get(key) ?? { amount: new Exact(0), count: 0 }
  sums.set(key, { amount: before.amount.plus(new Exact(amount).times(sign)), count: before.count + sign })
}

const isSame = (rows: BalanceDocument['body']['rows'], sums: Sums): boolean => {
  const found = [...sums].filter(([, { count }]) => count !== 0).map(([key, sum]) => textOf(key, sum))
  const stored = rows.flatMap(row => {
    const group = `${row.period_id} ${row.currency}`
    return [
      ...(row.owed_count > 0 ? [`owed ${group} ${row.owed_amount} ${row.owed_count}`] : []),
      ...(row.paid_count > 0 ? [`paid ${group} ${row.paid_amount} ${row.paid_count}`] : []),
    ]
  })
  return found.sort().join('\n') === stored.sort().join('\n')
}

const textOf = (key: string, { amount, count }: { readonly amount: Exact; readonly count: number }): string =>
  `${key} ${textOfSum(amount)} ${count}`
