import { describe, expect, test } from 'vitest'
import { compareLists, compareParked, compareRecord, type Lists } from '../../../demo/check/compare.ts'

const payout = (id: string, net_amount: string) => ({
  id,
  net_amount,
  currency: 'EUR',
  line_items: [{ amount: '1.50' }],
})
const lists: Lists = {
  reps: [{ id: 'rep_1' }, { id: 'rep_2' }],
  periods: [{ id: 'period_1' }],
  payouts: [payout('payout_1', '1.50'), payout('payout_2', '2'), payout('payout_3', '3')],
  payroll_files: [{ id: 'payroll_1', amount: '5', currency: 'EUR' }],
}
const compare = (got: Partial<Lists>) =>
  compareLists('Acme', lists, { ...lists, ...got }).map(({ what, expected, got }) => `${what}: ${expected} ≠ ${got}`)
const [first, second, third] = [payout('payout_1', '1.50'), payout('payout_2', '2'), payout('payout_3', '3')]

test('the same lists have no differences', () => {
  expect(compare(structuredClone(lists))).toEqual([])
})

describe('a changed answer is reported', () => {
  test('with an amount that is a cent off, and the sum that it changes', () => {
    expect(compare({ payouts: [first, { ...second, net_amount: '2.01' }, third] })).toEqual([
      'Acme, /payouts, payout_2: net_amount: 2 ≠ 2.01',
      'Acme, owed in EUR: 6.5 ≠ 6.51',
    ])
  })

  test('with the same amount in other characters', () => {
    expect(compare({ payouts: [{ ...first, net_amount: '1.5' }, second, third] })).toEqual([
      'Acme, /payouts, payout_1: net_amount: 1.50 ≠ 1.5',
    ])
    expect(compare({ payouts: [{ ...first, line_items: [{ amount: 1.5 }] }, second, third] })).toEqual([
      'Acme, /payouts, payout_1: line_items: [{"amount":"1.50"}] ≠ [{"amount":1.5}]',
    ])
  })

  test('with a missing record', () => {
    expect(compare({ payroll_files: [] })).toEqual([
      'Acme, /payroll_files: records: 1 ≠ 0',
      'Acme, /payroll_files: different ids: 1 ≠ 0',
      'Acme, /payroll_files, payroll_1: there ≠ not there',
      'Acme, left through payroll in EUR: 5 ≠ nothing',
    ])
  })

  test('with an extra or repeated record', () => {
    expect(compare({ reps: [...lists.reps, { id: 'rep_9' }] })).toContain('Acme, /reps, rep_9: not there ≠ there')
    expect(compare({ reps: [...lists.reps, { id: 'rep_1' }] })).toContain('Acme, /reps: records: 2 ≠ 3')
  })

  test('in a different order', () => {
    expect(compare({ payouts: [first, third, second] })).toEqual([
      'Acme, /payouts: order: payout_3 after payout_2 ≠ before it',
    ])
  })

  test('with a missing field, and with a field that nobody published', () => {
    const { currency: _, ...without } = first
    expect(compareRecord('single', first, { ...without, org_id: 'org_1' })).toEqual([
      { what: 'single, payout_1: currency', expected: 'EUR', got: 'nothing' },
      { what: 'single, payout_1: org_id', expected: 'nothing', got: 'org_1' },
    ])
  })

  test('with a parked record that has another code or other bytes', () => {
    const parked = { event_id: 'e1', code: 'data_invalid', value: 'AAAA' } as const
    expect(compareParked([parked], [{ ...parked, code: 'id_reused' }])).toHaveLength(1)
    expect(compareParked([parked], [{ ...parked, value: 'AAAB' }])).toHaveLength(1)
    expect(compareParked([parked], [])).not.toHaveLength(0)
    expect(compareParked([parked], [parked])).toEqual([])
  })
})
