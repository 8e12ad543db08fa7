/** The table of totals, over totals in memory. */
import { expect, test } from 'vitest'
import { showTotals } from '../../../tools/export/totals.ts'

/** The output of the command for these rows of totals. */
const shown = async (rows: readonly object[], options: { readonly csv?: boolean } = {}): Promise<string> => {
  const out: string[] = []
  const steps = {
    readTotals: async () => ({
      totals: { last_change_id: 'payout_1', totals: rows },
      last: { id: 'payout_1', seq: 5, at: 1 },
    }),
    readList: async () => ({ hits: [], hasMore: false }),
    out: (text: string) => void out.push(text),
    say: () => undefined,
  } as unknown as Parameters<typeof showTotals>[1]
  await showTotals({ org: 'org_a', asOf: undefined, kind: undefined, svg: undefined, json: false, ...options }, steps)
  return out.join('')
}

test('the table takes as many rows as there are', async () => {
  const row = { period_id: 'period_1', currency: 'EUR', owed_count: 1, paid_count: 0, paid_amount: '0.00' }
  const rows = Array.from({ length: 150_000 }, (_, at) => {
    const owed_amount = at === 7 ? '1.125' : '2.50'
    return { ...row, owed_amount, open_amount: owed_amount }
  })
  const lines = (await shown(rows)).trimEnd().split('\n')
  expect(lines).toHaveLength(rows.length + 1)
  expect(lines[1]).toMatch(/ 2\.500 /)
  expect(lines[8]).toMatch(/ 1\.125 /)
})

test('CSV has a row for each period and currency, with the amounts as the API answers them', async () => {
  const row = { period_id: 'period_1', currency: 'EUR', owed_amount: '12345678901234567890.10', owed_count: 2 }
  const rows = [
    { ...row, paid_amount: '-0.50', paid_count: 1, open_amount: '12345678901234567890.60' },
    { ...row, currency: 'JPY', owed_amount: '7', paid_amount: '0', paid_count: 0, open_amount: '7' },
  ]
  expect(await shown(rows, { csv: true })).toBe(
    [
      'period_id,period,currency,owed_amount,owed_count,paid_amount,paid_count,open_amount\r\n',
      'period_1,period_1,EUR,12345678901234567890.10,2,-0.50,1,12345678901234567890.60\r\n',
      'period_1,period_1,JPY,7,2,0,0,7\r\n',
    ].join(''),
  )
})
