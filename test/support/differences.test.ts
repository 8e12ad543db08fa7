import { describe, expect, test } from 'vitest'
import { differenceOf } from '../../schemas/money.ts'
import { differenceBetween } from './differences.ts'

const line = (id: string, amount = '1.00', description = '') =>
  ({ id, category: 'earned', description, amount, deal_id: null }) as const
const payout = (net_amount: string, line_items: ReturnType<typeof line>[], currency = 'EUR') => ({
  net_amount,
  earned_amount: net_amount,
  currency,
  line_items,
})

describe('the difference of two payouts', () => {
  test('has the differences of the amounts, and the lines by their ids', () => {
    const before = payout('10.00', [line('line_1'), line('line_2', '2.00'), line('line_3')])
    const after = payout('12.5', [line('line_4'), line('line_3'), line('line_2', '2.0')])
    expect(differenceBetween(before, after)).toEqual({
      net_amount: '2.5',
      earned_amount: '2.5',
      line_items_added: [line('line_4')],
      line_items_removed: [line('line_1')],
      line_items_changed: [{ before: line('line_2', '2.00'), after: line('line_2', '2.0') }],
    })
  })

  test('has no amounts if the currencies differ', () => {
    expect(differenceBetween(payout('1', []), payout('2', [], 'USD'))).toMatchObject({
      net_amount: null,
      earned_amount: null,
    })
  })
})

test.each([
  ['0.1', '0.3', '0.2'],
  ['9'.repeat(40), `-${'9'.repeat(40)}`, `-1${'9'.repeat(39)}8`],
  ['0', `0.${'0'.repeat(39)}1`, `0.${'0'.repeat(39)}1`],
  ['1.00', '1', '0'],
  ['-5', '-5.0', '0'],
  [
    '12345678901234567890123456789012345678',
    '0.00000000000000000001',
    '-12345678901234567890123456789012345677.99999999999999999999',
  ],
])('from %s to %s is exactly %s', (before, after, difference) => {
  expect(differenceOf(before, after)).toBe(difference)
})
