/** Totals that are counted from a balance are those that are counted from the first record. */
import { describe, expect, test } from 'vitest'
import type { ReaderParts } from '../../../../core/reading/pages/read-list.ts'
import { createReadTotals } from '../../../../core/reading/pages/read-totals.ts'
import { createSequences } from '../../../../core/reading/pages/sequences.ts'
import type { ScopedSearch } from '../../../../core/store/index.ts'
import { UNTIL_FOREVER } from '../../../../schemas/limits.ts'
import { type Asked, searchNow } from '../../../simulation/searches.ts'
import { Ledger, layout, ORG } from '../../../support/balance-ledger.ts'
import { generationOf } from '../../../support/layout.ts'
import { scopeOf } from '../../../support/read-scope.ts'

/** A clock that stands still. */
const stopped = () => 0

/** Every third change has a balance. The last event is at offset 17. */
const ledgerOf = (): Ledger => {
  const ledger = new Ledger()
  ledger.rep(1)
  ledger.payout(2, '10.50')
  ledger.replace(3, '4', 7)
  ledger.payroll(5, '10.50')
  ledger.replace(7, '5', 9)
  ledger.replace(8, '2', 14, { currency: 'USD' })
  ledger.payout(9, '0.01', { period_id: 'period_2', rep_id: 'rep_2' })
  ledger.payroll(11, '-10.50')
  ledger.payout(12, '-3', { until_seq: 16, rep_id: 'rep_2' })
  ledger.payout(14, '6', { rep_id: 'rep_2' })
  ledger.payroll(15, '1', { rep_id: 'rep_2' })
  ledger.payout(16, '7', { period_id: 'period_2', until_seq: UNTIL_FOREVER })
  ledger.rep(17)
  ledger.publish(18)
  return ledger
}

const reader = (ledger: Ledger, hasBalances: boolean) => {
  const asked: string[] = []
  const generation = { ...generationOf({ rules: 2 }), layout: { ...layout, hasBalances } }
  const at = { publishedTo: 18 }
  const parts = {
    readAt: async () => ({
      position: { generation, publishedTo: at.publishedTo, time: 7, takenBack: 0 },
      documents: [],
    }),
    cursors: { remembered: () => undefined, remember: () => undefined, forget: () => undefined },
    positionAsOf: async (_scope: unknown, current: unknown) => current,
    projectionTime: async () => 7,
  } as unknown as ReaderParts
  const search: ScopedSearch = async ({ index, routing }, text) => {
    const body = JSON.parse(text) as Asked & { readonly _source?: readonly string[] }
    // Where to look for the last change: it reads no totals.
    asked.push(index === 'p-g1-periods' && body._source?.join() === 'seq,sequence' ? 'start' : index)
    const answer = searchNow(ledger, index, routing, body, () => false)
    return Buffer.from(JSON.stringify(answer))
  }
  const read = createReadTotals(parts, search, createSequences(search, stopped), stopped)
  const totalsAt = async (publishedTo: number, period?: string, rep?: string) => {
    at.publishedTo = publishedTo
    return (await read(scopeOf(ORG), { asOf: undefined, period, rep })).totals
  }
  return { asked, totalsAt }
}

type Row = Awaited<ReturnType<ReturnType<typeof reader>['totalsAt']>>['totals'][number]
/** The sums of rows by period and currency, in cents. */
const centsOf = (rows: readonly Row[]) =>
  [...Map.groupBy(rows, ({ period_id, currency }) => `${period_id} ${currency}`)].toSorted().map(([group, of]) => {
    const cents = (amount: (row: Row) => string | number) =>
      of.reduce((sum, row) => sum + Math.round(Number(amount(row)) * 100), 0)
    const sums = [cents(row => row.owed_amount), cents(row => row.paid_amount), cents(row => row.open_amount)]
    return [group, ...sums, cents(row => row.owed_count), cents(row => row.paid_count)]
  })

const withBalances = async () => {
  const ledger = ledgerOf()
  const keeper = ledger.keeper()
  await ledger.pass(3)
  await keeper.stop()
  return ledger
}

describe('totals of an organization that has balances', () => {
  test('are the same at every position, of all periods and of one', async () => {
    const ledger = await withBalances()
    expect(ledger.balances().length).toBe(4)
    const [counted, whole] = [reader(ledger, true), reader(ledger, false)]
    for (let position = 1; position <= 18; position++) {
      // Those of all come last: the totals of a period would be taken from them.
      for (const period of ['period_1', 'period_2', 'period_3', undefined]) {
        const wanted = await whole.totalsAt(position, period)
        expect(await counted.totalsAt(position, period), `${position} ${period}`).toEqual(wanted)
      }
    }
  })

  test('name the last change and its sequence at every position', async () => {
    const ledger = await withBalances()
    const changes = [1, 2, 3, 5, 7, 8, 9, 11, 12, 14, 15, 16, 17]
    for (const hasBalances of [true, false]) {
      const { totalsAt } = reader(ledger, hasBalances)
      for (let position = 1; position <= 18; position++) {
        const known = changes.filter(seq => seq < position).length
        const { last_change_id, last_sequence } = await totalsAt(position)
        expect([position, last_sequence, last_change_id === null]).toEqual([position, known, known === 0])
      }
    }
  })

  test('are the sums of the lists', async () => {
    const { totalsAt } = reader(await withBalances(), true)
    const row = (
      period_id: string,
      owed: readonly [string, number],
      paid: readonly [string, number],
      open: string,
    ) => ({
      ...{ period_id, currency: 'EUR', owed_amount: owed[0], owed_count: owed[1] },
      ...{ paid_amount: paid[0], paid_count: paid[1], open_amount: open },
    })
    expect((await totalsAt(18)).totals).toEqual([
      row('period_1', ['16.5', 2], ['1', 3], '15.5'),
      row('period_2', ['7.01', 2], ['0', 0], '7.01'),
    ])
    expect((await totalsAt(4)).totals).toEqual([row('period_1', ['14.5', 2], ['0', 0], '14.5')])
  })

  test('ask for a balance only where a generation has them', async () => {
    const ledger = await withBalances()
    const [counted, whole] = [reader(ledger, true), reader(ledger, false)]
    await counted.totalsAt(18)
    await whole.totalsAt(18)
    expect(counted.asked).toContain('p-g1-periods')
    expect(whole.asked).not.toContain('p-g1-periods')
  })

  test('of all reps add up to those of the organization, at every position, of all periods and of one', async () => {
    const { totalsAt } = reader(await withBalances(), true)
    for (let position = 1; position <= 18; position++) {
      for (const period of ['period_1', 'period_2', 'period_3', undefined]) {
        const rows = []
        for (const rep of ['rep_1', 'rep_2', 'rep_3']) rows.push(...(await totalsAt(position, period, rep)).totals)
        const { totals } = await totalsAt(position, period)
        expect(centsOf(rows), `${position} ${period}`).toEqual(centsOf(totals))
      }
    }
  })

  test('of one rep are the sums of its records, and come from no balance', async () => {
    const { asked, totalsAt } = reader(await withBalances(), true)
    const openOf = async (rep: string, period?: string) =>
      (await totalsAt(18, period, rep)).totals.map(
        row => `${row.owed_amount} - ${row.paid_amount} = ${row.open_amount}`,
      )
    // First while nothing is cached, then out of the totals of all periods.
    expect(await openOf('rep_2', 'period_2')).toEqual(['0.01 - 0 = 0.01'])
    expect(await openOf('rep_2')).toEqual(['6 - 1 = 5', '0.01 - 0 = 0.01'])
    expect(await openOf('rep_2', 'period_1')).toEqual(['6 - 1 = 5'])
    expect(await openOf('rep_3')).toEqual([])
    expect(asked).not.toContain('p-g1-periods')
  })

  test('need six searches, however long the history is', async () => {
    const { asked, totalsAt } = reader(await withBalances(), true)
    await totalsAt(18)
    const payouts = 'p-g1-payouts'
    expect(asked).toEqual(['start', payouts, 'p-g1-periods', payouts, payouts, payouts])
  })
})
