import { describe, expect, test } from 'vitest'
import { compareLines } from '../../../../explorer/src/state/compare-lines.ts'

type Line = Parameters<typeof compareLines>[0][number]
const line = (id: string, description: string, amount: string, more: Partial<Line> = {}): Line => ({
  ...{ id, category: 'earned', description, amount, deal_id: null },
  ...more,
})
const compared = (from: readonly Line[], to: readonly Line[], isOneChain = true) =>
  compareLines(from, to, isOneChain).map(({ kind, line, before, after, difference }) => [
    kind,
    line.id,
    before,
    after,
    difference,
  ])

describe('the lines of two payouts', () => {
  test('that are equal but for their ids do not differ', () => {
    expect(compared([line('line_1', 'Deal', '5.00')], [line('line_2', 'Deal', '5.00')])).toEqual([])
  })

  test('that are equal are counted: one of two is removed', () => {
    const from = [line('line_1', 'Deal', '5.00'), line('line_2', 'Deal', '5.00')]
    expect(compared(from, [line('line_3', 'Deal', '5.00')])).toEqual([['removed', 'line_2', '5.00', null, '-5']])
  })

  test('have changed if one has the id, or the text, of another', () => {
    const from = [line('line_1', 'Deal', '5.00'), line('line_2', 'Bonus', '38.29'), line('line_3', 'Advance', '-1')]
    const to = [line('line_1', 'Deal, corrected', '7.00'), line('line_9', 'Bonus', '53.60'), line('line_8', 'New', '2')]
    expect(compared(from, to)).toEqual([
      ['changed', 'line_1', '5.00', '7.00', '2'],
      ['changed', 'line_9', '38.29', '53.60', '15.31'],
      ['added', 'line_8', null, '2', '2'],
      ['removed', 'line_3', '-1', null, '1'],
    ])
  })

  test('of another deal or category are others', () => {
    const to = [line('line_2', 'Deal', '5.00', { deal_id: 'deal_1' })]
    const kinds = compared([line('line_1', 'Deal', '5.00')], to).map(([kind]) => kind)
    expect(kinds).toEqual(['added', 'removed'])
  })

  test('of two periods are others, also with the same id: publishers number the lines of each payout anew', () => {
    const [from, to] = [[line('line_1', 'Deal 17', '5.00')], [line('line_1', 'Deal 18', '7.00')]]
    expect(compared(from, to, false).map(([kind]) => kind)).toEqual(['added', 'removed'])
    expect(compared(from, to, true).map(([kind]) => kind)).toEqual(['changed'])
  })
})
