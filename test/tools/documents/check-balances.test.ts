import { describe, expect, test } from 'vitest'
import type { Request } from '../../../core/store/elasticsearch/client.ts'
import { UNTIL_FOREVER } from '../../../schemas/limits.ts'
import { layoutOf } from '../../../schemas/stored/layout.ts'
import { BalanceCheck } from '../../../tools/documents/check-balances.ts'
import { sending } from '../../support/answering.ts'

const layout = layoutOf('p', { generation: 'g1', topic: 't', layout: 2 })
const row = (currency: string, owed: string, count: number, paid = '0', paid_count = 0) => ({
  period_id: 'period_1',
  currency,
  owed_amount: owed,
  owed_count: count,
  paid_amount: paid,
  paid_count,
})
const balance = (seq: number, sequence: number, rows: object[]) => ({
  org_id: 'org_1',
  seq,
  sequence,
  body_bytes: 1,
  body: { rows },
})

const checkOf = (balances: readonly object[], position = 100) => {
  const hits = balances.map((_source, place) => ({ _id: `org_1:${place}`, _source, sort: [place] }))
  const answer = ({ method, path, body }: Request) => {
    if (path.endsWith('_refresh')) return { _shards: { total: 1, successful: 1, failed: 0 } }
    if (path.endsWith('/_pit') && method === 'POST') return { id: 'pit' }
    if (path !== '/_search') return {}
    const { size, search_after: [after] = [-1] } = body as { size: number; search_after?: [number] }
    const found = hits.filter(({ sort: [place = 0] }) => place > after).slice(0, size)
    return { pit_id: 'pit', timed_out: false, _shards: { total: 1, successful: 1, failed: 0 }, hits: { hits: found } }
  }
  const send = sending(async request => ({ status: 200, body: answer(request) }))
  return BalanceCheck.of(layout, [position], undefined, { send, sleep: async () => undefined })
}

const payout = (seq: number, net_amount: string, until_seq = UNTIL_FOREVER, currency = 'EUR') => ({
  seq,
  until_seq,
  period_id: 'period_1',
  body: { net_amount, currency },
})

/** Offsets 1 to 6: a rep, two payouts, the second replaced in another currency, a payment, and its void. */
const addRecords = (check: BalanceCheck): void => {
  check.add('payroll_files', 'org_1', { seq: 6, period_id: 'period_1', body: { amount: '-1.50', currency: 'EUR' } })
  check.add('payouts', 'org_1', payout(4, '2', UNTIL_FOREVER, 'USD'))
  check.add('payouts', 'org_1', payout(3, '9.99', 4))
  check.add('payouts', 'org_1', payout(2, '1.50'))
  check.add('payroll_files', 'org_1', { seq: 5, period_id: 'period_1', body: { amount: '1.50', currency: 'EUR' } })
  check.add('reps', 'org_1', { seq: 1, body: {} })
  // A list of versions, a chain, and a record of another organization.
  check.add('reps', 'org_1', { body: {} })
  check.add('chains', 'org_1', { body: {} })
  check.add('payouts', 'org_2', payout(2, '1.50'))
}

const right = [
  balance(3, 3, [row('EUR', '11.49', 2)]),
  balance(6, 6, [row('EUR', '1.5', 1, '0', 2), row('USD', '2', 1)]),
]

describe('the check of balances', () => {
  test('finds nothing where each is the sum of the records up to its change', async () => {
    const check = await checkOf(right.toReversed())
    addRecords(check)
    expect(check.wrong()).toEqual([])
  })

  test.each([
    ['with a replaced payout', balance(6, 6, [row('EUR', '11.49', 2, '0', 2), row('USD', '2', 1)])],
    ['without a payment', balance(6, 6, [row('EUR', '1.5', 1, '-1.5', 1), row('USD', '2', 1)])],
    ['without a currency', balance(6, 6, [row('EUR', '1.5', 1, '0', 2)])],
    ['after another number of changes', balance(6, 7, right[1]?.body.rows ?? [])],
  ])('finds one %s', async (_, wrong) => {
    const check = await checkOf([right[0] ?? {}, wrong])
    addRecords(check)
    expect(check.wrong()).toEqual([{ organization: 'org_1', sequence: wrong.sequence }])
  })

  test('finds those that include a stored amount that is damaged', async () => {
    const check = await checkOf(right)
    addRecords(check)
    check.add('payouts', 'org_1', payout(6, 'another'))
    expect(check.wrong()).toEqual([{ organization: 'org_1', sequence: 6 }])
    const first = await checkOf(right)
    addRecords(first)
    first.add('payouts', 'org_1', payout(3, 'another', 4))
    expect(first.wrong().map(({ sequence }) => sequence)).toEqual([3, 6])
  })

  test('leaves out those after the positions, up to which the records are read', async () => {
    const check = await checkOf([...right, balance(9, 9, [])], 9)
    addRecords(check)
    expect(check.wrong()).toEqual([])
  })
})
