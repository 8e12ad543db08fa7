import { describe, expect, test } from 'vitest'
import { compareLines } from '../../../../explorer/src/state/compare-lines.ts'

type Line = Parameters<typeof compareLines>[0]['line_items'][number]
const line = (id: string, description: string, amount: string, more: Partial<Line> = {}): Line => ({
  ...{ id, category: 'earned', description, amount, deal_id: null },
  ...more,
})
const compared = (from: readonly Line[], to: readonly Line[], isOneChain = true, currency = 'EUR') =>
  compareLines({ currency: 'EUR', line_items: [...from] }, { currency, line_items: [...to] }, isOneChain).map(
    ({ kind, line, before, after, difference }) => [kind, line.id, before, after, difference],
  )

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

  test('are paired by deal and text before their ids: a recalculation may number them anew', () => {
    const of = (id: string, deal_id: string, amount: string) => line(id, `Deal ${deal_id}`, amount, { deal_id })
    const from = [of('line_1', 'a', '100'), of('line_2', 'b', '50')]
    const to = [of('line_1', 'z', '10'), of('line_2', 'a', '120'), of('line_3', 'b', '50')]
    expect(compared(from, to)).toEqual([
      ['added', 'line_1', null, '10', '10'],
      ['changed', 'line_2', '100', '120', '20'],
    ])
  })

  test('with one id, but of two deals, are others', () => {
    const [from, to] = [
      [line('line_1', 'Deal', '5', { deal_id: 'a' })],
      [line('line_1', 'Sale', '7', { deal_id: 'b' })],
    ]
    expect(compared(from, to).map(([kind]) => kind)).toEqual(['added', 'removed'])
  })

  test('of one text meet the line with their id', () => {
    const from = [line('line_1', 'Bonus', '10'), line('line_2', 'Bonus', '20')]
    const to = [line('line_2', 'Bonus', '25'), line('line_1', 'Bonus', '15')]
    expect(compared(from, to).map(([, ...amounts]) => amounts.slice(0, 3))).toEqual([
      ['line_2', '20', '25'],
      ['line_1', '10', '15'],
    ])
  })

  test('of two periods are others, also with the same id: publishers number the lines of each payout anew', () => {
    const [from, to] = [[line('line_1', 'Deal 17', '5.00')], [line('line_1', 'Deal 18', '7.00')]]
    expect(compared(from, to, false).map(([kind]) => kind)).toEqual(['added', 'removed'])
    expect(compared(from, to, true).map(([kind]) => kind)).toEqual(['changed'])
  })

  test('in another currency are others, also with the same id, text and digits', () => {
    const lines = [line('line_1', 'Deal', '100.00'), line('line_2', 'Bonus', '5')]
    expect(compared(lines, lines)).toEqual([])
    expect(compared(lines, lines, true, 'USD').map(([kind, id]) => [kind, id])).toEqual([
      ['added', 'line_1'],
      ['added', 'line_2'],
      ['removed', 'line_1'],
      ['removed', 'line_2'],
    ])
  })
})
