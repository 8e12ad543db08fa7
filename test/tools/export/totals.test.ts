/** The table of totals, over totals in memory. */
import { expect, test } from 'vitest'
import { showTotals } from '../../../tools/export/totals.ts'

test('the table takes as many rows as there are', async () => {
  const row = { period_id: 'period_1', currency: 'EUR', owed_count: 1, paid_count: 0, paid_amount: '0.00' }
  const rows = Array.from({ length: 150_000 }, (_, at) => {
    const owed_amount = at === 7 ? '1.125' : '2.50'
    return { ...row, owed_amount, open_amount: owed_amount }
  })
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
  await showTotals({ org: 'org_a', asOf: undefined, kind: undefined, svg: undefined, json: false }, steps)
  const lines = out.join('').trimEnd().split('\n')
  expect(lines).toHaveLength(rows.length + 1)
  expect(lines[1]).toMatch(/ 2\.500 /)
  expect(lines[8]).toMatch(/ 1\.125 /)
})
