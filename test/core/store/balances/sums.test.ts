import { describe, expect, test } from 'vitest'
import { addAmount, groupsOf, rowsOf } from '../../../../core/store/balances/sums.ts'

const counted = (period_id: string, currency: string, amount: string, doc_count = 1) => ({
  key: { period_id, currency, amount },
  doc_count,
})

describe('sums by period and currency', () => {
  test('are exact, and in the order of periods and currencies', () => {
    const groups = groupsOf([])
    addAmount(groups, 'owed', 1, counted('period_2', 'EUR', '0.1', 3))
    addAmount(groups, 'paid', 1, counted('period_2', 'EUR', `${'9'.repeat(40)}.${'9'.repeat(40)}`))
    addAmount(groups, 'owed', 1, counted('period_1', 'USD', '-5.50', 2))
    addAmount(groups, 'owed', 1, counted('period_1', 'EUR', '1'))
    expect(rowsOf(groups)).toEqual([
      { period_id: 'period_1', currency: 'EUR', owed_amount: '1', owed_count: 1, paid_amount: '0', paid_count: 0 },
      { period_id: 'period_1', currency: 'USD', owed_amount: '-11', owed_count: 2, paid_amount: '0', paid_count: 0 },
      {
        period_id: 'period_2',
        currency: 'EUR',
        owed_amount: '0.3',
        owed_count: 3,
        paid_amount: `${'9'.repeat(40)}.${'9'.repeat(40)}`,
        paid_count: 1,
      },
    ])
  })

  test('go on from rows as if everything had been added at once', () => {
    const [once, first] = [groupsOf([]), groupsOf([])]
    for (const groups of [once, first]) addAmount(groups, 'owed', 1, counted('period_1', 'EUR', '0.10', 2))
    const later = groupsOf(rowsOf(first))
    for (const groups of [once, later]) addAmount(groups, 'paid', 1, counted('period_1', 'EUR', '-0.001'))
    expect(rowsOf(later)).toEqual(rowsOf(once))
  })

  test('keep no row of amounts that were all taken away', () => {
    const groups = groupsOf([])
    addAmount(groups, 'owed', 1, counted('period_1', 'EUR', '-7.00'))
    addAmount(groups, 'owed', 1, counted('period_1', 'USD', '7'))
    addAmount(groups, 'owed', -1, counted('period_1', 'EUR', '-7.00'))
    expect(rowsOf(groups).map(({ currency }) => currency)).toEqual(['USD'])
  })
})
