import { Decimal } from 'decimal.js'
import { expect, test } from 'vitest'
import { type Basis, calculate, makeBasis, opposite, recalculate } from '../../../demo/data/payout.ts'
import { createRandom } from '../../../demo/data/random.ts'

const random = createRandom(5)
const deal = { id: 'deal_1', customer: 'Old Mill Foods', amount: '1000.01', share: '0.3333', rate: '0.0725' }
const basis: Basis = { kind: 'month', deals: [deal], attainment: '1.0375', corrections: [] }

test('every step of a deal keeps its decimals until the last one rounds', () => {
  const { calculation_trace, line_items } = calculate(basis, random)
  expect(calculation_trace.map(({ step, output_amount }) => [step, output_amount])).toEqual([
    [1, '333.303333'],
    [2, '24.1644916425'],
    [3, '25.07066007909375'],
    [4, '25.07'],
    [5, '25.07'],
  ])
  expect(line_items.map(({ category, amount, deal_id }) => [category, amount, deal_id])).toEqual([
    ['earned', '25.07', 'deal_1'],
  ])
})

test('a negative amount is carried forward, and nothing is owed', () => {
  const recovered = { category: 'recovered', description: 'Cancelled', amount: '-100.00', deal_id: null } as const
  const { earned_amount, net_amount, line_items } = calculate({ ...basis, corrections: [recovered] }, random)
  expect({ earned_amount, net_amount }).toEqual({ earned_amount: '-74.93', net_amount: '0.00' })
  expect(line_items.at(-1)?.amount).toBe('74.93')
})

test('the amount of each line is the result of a step, also that of a cancellation', () => {
  const recovered = { category: 'recovered', description: 'Deal cancelled', amount: '-100.00', deal_id: 'd2' } as const
  const { line_items, calculation_trace } = calculate({ ...basis, corrections: [recovered] }, random)
  const results = calculation_trace.map(({ output_amount, deal_id }) => `${output_amount} ${deal_id}`)
  expect(
    line_items.map(({ amount, deal_id }) => `${amount} ${deal_id}`).filter(line => !results.includes(line)),
  ).toEqual([])
})

test('a payout without deals has no lines, but a trace', () => {
  const { net_amount, line_items, calculation_trace } = calculate({ ...basis, deals: [] }, random)
  expect({ net_amount, line_items, steps: calculation_trace.length }).toEqual({
    net_amount: '0.00',
    line_items: [],
    steps: 1,
  })
})

test('a recalculation changes the basis, and its lines add up again', () => {
  for (let count = 0; count < 200; count++) {
    const before = makeBasis('quarter', random)
    const after = recalculate(before, random)
    const { net_amount, line_items } = calculate(after, random)
    expect(after).not.toEqual(before)
    expect(line_items.reduce((sum, { amount }) => sum.plus(amount), new Decimal(0)).eq(net_amount)).toBe(true)
  }
})

test('the opposite of an amount differs only in its sign', () => {
  expect([opposite('12.50'), opposite('-12.50')]).toEqual(['-12.50', '12.50'])
})
