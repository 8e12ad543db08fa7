import { expect, test } from 'vitest'
import type { Case } from '../../demo/check/verify.ts'
import { storyOf } from '../../demo/story.ts'

const line = (description: string, amount: string, deal_id: string | null = null) => ({
  id: `line_${Math.random()}`,
  category: 'earned',
  description,
  amount,
  deal_id,
})
const payout = (id: string, net_amount: string, superseded_by_id: string | null, line_items: object[], more = {}) => ({
  ...{ id, rep_id: 'rep_1', period_id: 'period_1', currency: 'EUR', net_amount, superseded_by_id, line_items },
  ...more,
})
const storyWith = (...payouts: ReturnType<typeof payout>[]) =>
  storyOf(
    {
      organization: { name: 'Acme', id: 'org_1', keys: { reading: { text: 'ck_1' } } },
      expected: {
        reps: [{ id: 'rep_1', name: 'Ada' }],
        periods: [{ id: 'period_1', name: 'March 2026' }],
        payouts: payouts.filter(({ superseded_by_id }) => superseded_by_id === null),
        superseded: payouts.filter(({ superseded_by_id }) => superseded_by_id !== null),
      },
    } as unknown as Case,
    'http://explorer',
  )

test('the story names the rep, both amounts, the difference, the reason and the link', () => {
  const correction = line('Correction', '0.10')
  const lines = storyWith(
    payout('payout_1', '100.10', 'payout_2', [line('Deal', '100.00', 'deal_1'), correction]),
    payout('payout_2', '120.00', null, [correction, line('Correction', '19.90'), line('Deal', '100.00', 'deal_1')]),
  )
  expect(lines).toEqual([
    'One payout was replaced: Ada, March 2026, of Acme',
    '  before  EUR 100.10  payout_1',
    '  after   EUR 120.00  payout_2, +19.90',
    '  why     “Correction” is new, +19.90',
    '  see it  in a browser:',
    '          http://explorer/#/history/payout_1?key=ck_1',
  ])
})

test('the payout with the fewest reasons is told, and one in another currency is not', () => {
  const deals = (...amounts: string[]) => amounts.map((amount, at) => line(`Deal ${at}`, amount, `deal_${at}`))
  const lines = storyWith(
    payout('payout_1', '3', 'payout_2', deals('1', '2')),
    payout('payout_2', '5', null, deals('2', '3')),
    payout('payout_3', '3', 'payout_4', deals('1', '2')),
    payout('payout_4', '4', 'payout_5', deals('1', '3')),
    payout('payout_5', '4', null, deals('1', '3'), { currency: 'USD' }),
  )
  expect(lines[3]).toBe('  why     “Deal 1” was 2.00, and is 3.00')
  expect(lines.at(-1)).toContain('/payout_3?')
  expect(storyWith(payout('payout_1', '1', null, []))).toEqual([])
})
