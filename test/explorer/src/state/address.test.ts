import { describe, expect, test } from 'vitest'
import {
  addressOfId,
  fragmentOf,
  isKeyText,
  momentIn,
  readAddress,
  takeKey,
  type ViewAddress,
} from '../../../../explorer/src/state/address.ts'

test('the fragment of an address is read as the same address', () => {
  const all: ViewAddress[] = [
    { view: 'overview' },
    { view: 'payouts', rep: 'rep_1', period: 'period_1', asOf: '2026-02-01T09:30:00+01:00' },
    { view: 'payout', id: 'payout_1', asOf: 'rep_1.2' },
    { view: 'history', id: 'payout_1', from: 'payout_1', to: 'payout_2' },
    { view: 'changes' },
    { view: 'compare', id: 'payout_2', from: 'payout_1' },
    { view: 'payroll', id: 'payroll_1' },
    { view: 'payouts', open: 'only' },
    { view: 'corrections', since: '2026-02-01', asOf: 'payout_1' },
    { view: 'payouts', deal: 'deal_1', asOf: 'payout_1' },
    { view: 'payout', id: 'a b+c&d=%2B#ü?/' },
  ]
  expect(all.map(address => readAddress(fragmentOf(address)))).toEqual(all)
})

test('a plus sign that somebody types is itself, as in an instant', () => {
  expect(readAddress('#/overview?as_of=2026-02-01T09:30:00+01:00').asOf).toBe('2026-02-01T09:30:00+01:00')
  expect(fragmentOf({ view: 'overview', asOf: '2026-02-01 09:30' })).toBe('#/overview?as_of=2026-02-01%2009%3A30')
})

test('any other fragment is an address, too', () => {
  const views = ['', '#', '#/', '#as_of=payout_1', '#/payout', '#/payout/', '#/payout/%', '#/payouts/', '#changes']
  expect(views.map(readAddress).map(({ view }) => view)).toEqual([
    ...['overview', 'overview', 'overview', 'overview', 'payouts', 'payouts', 'payout', 'payouts', 'changes'],
  ])
})

test('an address that no view has is unknown, and keeps its moment', () => {
  const fragments = ['#/nonsense', '#x', '#/overview/x', '#/payouts/payout_1', '#/payout/payout_1/x', '#//x']
  expect(fragments.map(readAddress)).toEqual(fragments.map(() => ({ view: 'unknown' })))
  expect(readAddress('#/nonsense?as_of=payout_1')).toEqual({ view: 'unknown', asOf: 'payout_1' })
  expect(readAddress(fragmentOf({ view: 'unknown' }))).toEqual({ view: 'unknown' })
})

describe('a key', () => {
  test('is taken out of a fragment, and the rest is the address', () => {
    expect(takeKey('#key=ck_1')).toEqual({ key: 'ck_1', rest: '#/' })
    expect(takeKey('#/history/payout_1?key=ck_1&as_of=payout_2')).toEqual({
      key: 'ck_1',
      rest: '#/history/payout_1?as_of=payout_2',
    })
    expect(takeKey('#nonsense?key=ck_1')).toEqual({ key: 'ck_1', rest: '#/nonsense' })
    expect(takeKey('#/payouts?rep=rep_1')).toEqual({ key: undefined, rest: '#/payouts?rep=rep_1' })
  })

  test('with characters that a header refuses is ignored: the page asks for another key', () => {
    expect(['ck_1+/=', 'ck_ü', 'ck 1', ''].map(isKeyText)).toEqual([true, false, false, false])
  })

  test('is never written into a fragment', () => {
    const address = readAddress('#/payouts?key=ck_1&rep=rep_1')
    expect(fragmentOf(address)).toBe('#/payouts?rep=rep_1')
  })

  test.each(['rep', 'period', 'deal', 'open', 'since', 'from', 'to', 'as_of'])(
    'is never the value of %s: such an address is of no page',
    parameter => {
      const field = parameter === 'as_of' ? 'asOf' : parameter
      const key = 'ck_3CO1P4MTQYESPn4EV8DYTXVLCoSfCLp'
      expect(fragmentOf({ view: 'payouts', [field]: key })).toBe('#/payouts')
      expect(readAddress(`#/payouts?${parameter}=${key}`)).toEqual({ view: 'unknown' })
    },
  )
})

describe('a moment that somebody typed', () => {
  test.each([
    ['2026-02-01T08:30:00Z', '2026-02-01T08:30:00Z'],
    ['2026-02-01T08:30:00.123+01:00', '2026-02-01T08:30:00.123+01:00'],
    ['2026-02-01 08:30:00.123456 UTC', '2026-02-01T08:30:00.123456Z'],
    ['2026-02-01 08:30', '2026-02-01T08:30:00Z'],
    ['2026-02-01', '2026-02-01T00:00:00Z'],
    ['payout_1', 'payout_1'],
    ['rep_1.12', 'rep_1.12'],
  ])('%j is the moment %s', (text, moment) => {
    expect(momentIn(text)).toBe(moment)
  })

  test.each([
    '',
    'demo_3CO1P4MTQYESPn4EV8DYTXVLCoSfCLp',
    'ck_payout_1',
    'rep_1',
    'yesterday',
    '2026-02',
    '2026-02-01T',
  ])('%j is no moment, so the page writes it into no address', text => {
    expect(momentIn(text)).toBeUndefined()
  })
})

test('an id is the address of what it names, and the version of a rep or period that of its moment', () => {
  const found = ['payout_1', 'payroll_1', 'rep_1', 'period_1', 'deal_1', 'rep_1.2', 'period_9.10'].map(addressOfId)
  expect(found).toEqual([
    { view: 'payout', id: 'payout_1' },
    { view: 'payroll', id: 'payroll_1' },
    { view: 'payouts', rep: 'rep_1' },
    { view: 'payouts', period: 'period_1' },
    { view: 'payouts', deal: 'deal_1' },
    { view: 'payouts', rep: 'rep_1', asOf: 'rep_1.2' },
    { view: 'payouts', period: 'period_9', asOf: 'period_9.10' },
  ])
  const others = ['', 'Ada', 'ck_1', 'key_1', 'payout_', 'payout_1.2', 'deal_1.1', 'rep_1.0', 'rep_a b', 'xrep_1']
  expect(others.map(addressOfId)).toEqual(others.map(() => undefined))
})
