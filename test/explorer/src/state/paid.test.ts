import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Client, type Filter, type PayrollRecord, RefusedError } from '../../../../client/src/index.ts'
import { currentOf, PAYOUTS_MAX, PAYROLL_MAX, payrollListsOf, readPaid } from '../../../../explorer/src/state/paid.ts'

type Of = { readonly rep_id: string; readonly period_id: string; readonly currency: string }

/** An API of payroll records, in pages of 200. It counts its requests. */
const clientOf = (records: readonly (Of & { readonly id?: string; readonly amount: string })[]) => {
  const sent = { requests: 0 }
  async function* pages({ repId, periodId }: Filter) {
    const found = records.filter(
      ({ rep_id, period_id }) => rep_id === (repId ?? rep_id) && period_id === (periodId ?? period_id),
    )
    for (let at = 0; at === 0 || at < found.length; at += 200) {
      sent.requests++
      yield { data: found.slice(at, at + 200) as unknown as PayrollRecord[], hasMore: at + 200 < found.length }
    }
  }
  const list = (filter: Filter) => ({
    pages: () => pages(filter),
    async *[Symbol.asyncIterator]() {
      for await (const { data } of pages(filter)) yield* data
    },
  })
  const client = { payrollRecords: list } as unknown as Client
  return { client, sent }
}

const id = fc.integer({ min: 1, max: 9 }).map(String)
const of = fc.record({ rep_id: id, period_id: id, currency: fc.constantFrom('EUR', 'USD') })
const cents = fc.integer({ min: -9_999, max: 9_999 })

test('what was paid of each payout is the exact sum of its payroll records, in few lists', async () => {
  const anything = fc.record({
    payouts: fc.array(of, { maxLength: 12 }),
    paid: fc.array(fc.tuple(of, cents), { maxLength: 40 }),
  })
  await fc.assert(
    fc.asyncProperty(anything, async ({ payouts, paid }) => {
      const { client, sent } = clientOf(paid.map(([where, amount]) => ({ ...where, amount: decimalOf(amount) })))
      const found = await readPaid(client, payouts, {})
      expect(sent.requests).toBeLessThanOrEqual(6)
      const wanted = payouts.map(payout => {
        const all = paid.filter(([where]) => JSON.stringify(where) === JSON.stringify(payout))
        return all.reduce((sum, [, amount]) => sum + amount, 0)
      })
      const paidOf = found.state === 'known' ? found.paid : () => 'unknown'
      expect(payouts.map(payout => Math.round(100 * Number(paidOf(payout))) || 0)).toEqual(wanted)
    }),
  )
})
/** Of whole cents: small enough for a number. */
const decimalOf = (amount: number): string => (amount / 100).toFixed(2)

test('a sum has more digits than a double', async () => {
  const where = { rep_id: 'rep_1', period_id: 'period_1', currency: 'EUR' }
  const { client } = clientOf(['99999999999999999999.01', '0.02'].map(amount => ({ ...where, amount })))
  const found = await readPaid(client, [where], {})
  expect(found.state === 'known' && found.paid(where)).toBe('99999999999999999999.03')
})

test('of a period of very many reps, payroll records are read payout by payout, and of very many payouts none', async () => {
  const payouts = Array.from({ length: 50_000 }, (_, at) => ({ rep_id: `rep_${at}`, period_id: 'p', currency: 'EUR' }))
  const { client, sent } = clientOf(payouts.map((payout, at) => ({ ...payout, amount: String(at) })))
  expect(await readPaid(client, payouts.slice(0, PAYOUTS_MAX + 1), {})).toEqual({ state: 'too many' })
  expect(sent.requests).toBe(PAYROLL_MAX / 200)
  const shown = payouts.slice(-PAYOUTS_MAX)
  const found = await readPaid(client, shown, {})
  const paidOf = found.state === 'known' ? found.paid : () => 'unknown'
  expect(shown.map(paidOf)).toEqual(shown.map(({ rep_id }) => rep_id.replace('rep_', '')))
  expect(sent.requests).toBe(2 * (PAYROLL_MAX / 200) + PAYOUTS_MAX)
  // Of few reps, only their records are read.
  expect((await readPaid(client, payouts.slice(0, 5), { periodId: 'p' })).state).toBe('known')
  expect(sent.requests).toBe(2 * (PAYROLL_MAX / 200) + PAYOUTS_MAX + 5)
})

test('a payment whose rep, period and currency have no payout is named when all payouts of the view are there', async () => {
  const of = (rep_id: string, currency = 'EUR') => ({ rep_id, period_id: 'period_January', currency })
  const { client } = clientOf([
    { ...of('rep_1'), id: 'payroll_1', amount: '100' },
    { ...of('rep_2'), id: 'payroll_2', amount: '500.00' },
    { ...of('rep_1', 'USD'), id: 'payroll_3', amount: '7' },
    // Paid, reversed, and paid again.
    { ...of('rep_3'), id: 'payroll_4', amount: '20' },
    { ...of('rep_3'), id: 'payroll_5', amount: '-20' },
    { ...of('rep_3'), id: 'payroll_6', amount: '30' },
    // Nothing is left of it.
    { ...of('rep_4'), id: 'payroll_7', amount: '9.5' },
    { ...of('rep_4'), id: 'payroll_8', amount: '-9.50' },
  ])
  const named = async (...[payouts, filter, isWhole]: [ReturnType<typeof of>[], Filter, boolean]) => {
    const found = await readPaid(client, payouts, filter, isWhole)
    return found.state === 'known' ? found.withoutPayout : found
  }
  const ofRep2 = { ...of('rep_2'), id: 'payroll_2', paid: '500' }
  expect(await named([of('rep_1')], {}, true)).toEqual([
    ofRep2,
    { ...of('rep_1', 'USD'), id: 'payroll_3', paid: '7' },
    { ...of('rep_3'), id: 'payroll_6', paid: '30' },
  ])
  expect(await named([], { repId: 'rep_2' }, true)).toEqual([ofRep2])
  expect(await named([of('rep_2')], { repId: 'rep_2' }, true)).toEqual([])
  // A payout that was replaced during the walk, by one in another currency.
  expect(await named([of('rep_2'), of('rep_2', 'USD')], { repId: 'rep_2' }, true)).toEqual([ofRep2])
  // The payout of a payment may be on a later page.
  expect(await named([of('rep_1')], {}, false)).toBe(undefined)
})

test('of very many payroll records it is not known which have no payout, and what was paid of each payout still is', async () => {
  const of = (at: number) => ({ rep_id: `rep_${at}`, period_id: 'p', currency: 'EUR' })
  const { client } = clientOf(Array.from({ length: PAYROLL_MAX + 1 }, (_, at) => ({ ...of(at), amount: String(at) })))
  const found = await readPaid(client, [of(3)], {}, true)
  expect(found.state === 'known' && [found.paid(of(3)), found.withoutPayout]).toEqual(['3', undefined])
})

test('the lists are of the rep and the period that the view is of', () => {
  const payouts = [{ rep_id: 'rep_1', period_id: 'period_1', currency: 'EUR' }]
  expect(payrollListsOf(payouts, { repId: 'rep_1' })).toEqual([{ repId: 'rep_1' }])
  expect(payrollListsOf(payouts, { periodId: 'period_1' })).toEqual([{ repId: 'rep_1', periodId: 'period_1' }])
  expect(payrollListsOf([], {})).toEqual([])
})

test('a refusal is told from a failure: one says what the key may not read, the other to try again', async () => {
  const failing = (why: unknown) =>
    ({
      payrollRecords: () => ({
        pages: () => {
          throw why
        },
      }),
    }) as unknown as Client
  const payouts = [{ rep_id: 'rep_1', period_id: 'period_1', currency: 'EUR' }]
  const refusal = (code: string) => new RefusedError(new Response(null, { status: 403 }), { code, message: 'no' })
  const refused = refusal('forbidden')
  expect(await readPaid(failing(refused), payouts, {})).toEqual({ state: 'refused', why: refused })
  for (const failure of [new TypeError('fetch failed'), refusal('unknown')])
    expect(await readPaid(failing(failure), payouts, {})).toEqual({ state: 'failed', why: failure })
})

test('of payouts of one rep and period, the last of the list is current, also if one between them is not in it', () => {
  const payout = (id: string, supersedes_id: string | null, period_id = 'period_1') => {
    return { id, supersedes_id, rep_id: 'rep_1', period_id }
  }
  const [first, other, last] = [payout('P1', null), payout('P4', null, 'period_2'), payout('P3', 'P2')]
  expect(currentOf([first, last])).toEqual([last])
  expect(currentOf([first, other, last])).toEqual([other, last])
})
