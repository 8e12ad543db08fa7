import { expect, test } from 'vitest'
import { UNTIL_FOREVER } from '../../../schemas/limits.ts'
import { comparableRecordOf, type LineContent, type RecordKind } from '../../../tools/documents/comparable-content.ts'
import { moneyRows, recordRow } from '../../../tools/documents/compare.ts'
import { linesChanged } from '../../../tools/documents/lines.ts'

const line = (id: string, amount: string, more: Partial<LineContent> = {}): LineContent => ({
  id,
  category: 'earned',
  description: 'Commission',
  amount,
  deal_id: null,
  ...more,
})
const lines = (currency: string, ...line_items: LineContent[]) => ({ currency, line_items })
const changed = (...[a, b]: Parameters<typeof linesChanged>) =>
  linesChanged(a, b).map(({ id, change, currency, a, b, difference, field }) =>
    [change, id, currency, a, b, difference, field].join(' '),
  )

test('lines are added, removed or changed, each with its difference in money', () => {
  const a = lines('EUR', line('line_1', '1.00'), line('line_2', '2.00'), line('line_3', '3.00'), line('line_4', '4.00'))
  const b = lines(
    'EUR',
    line('line_4', '4.00', { category: 'adjusted' }),
    line('line_1', '1.00'),
    line('line_2', '2.50', { description: 'Corrected' }),
    line('line_5', '-5.00'),
  )
  expect(changed(a, b)).toEqual([
    'changed line_4 EUR 4.00 4.00 0.00 category',
    'changed line_2 EUR 2.00 2.50 0.50 amount',
    'added line_5 EUR  -5.00 -5.00 ',
    'removed line_3 EUR 3.00  -3.00 ',
  ])
})

test('a line in another currency is a different line; a missing payout has no lines', () => {
  expect(changed(lines('EUR', line('line_1', '1.00')), lines('USD', line('line_1', '1.00')))).toEqual([
    'added line_1 USD  1.00 1.00 ',
    'removed line_1 EUR 1.00  -1.00 ',
  ])
  expect(changed(undefined, lines('EUR', line('line_1', '1.00')))).toHaveLength(1)
  expect(changed(lines('EUR', line('line_1', '1.00')), undefined)).toHaveLength(1)
})

test('money differs by amount, not by notation; a missing amount is 0', () => {
  const a = new Map([
    ['owed rep_1 period_1 EUR', '100.00'],
    ['owed rep_2 period_1 EUR', '1.0'],
    ['paid rep_1 period_1 USD', '5'],
  ])
  const b = new Map([
    ['owed rep_1 period_1 EUR', '110.00'],
    ['owed rep_2 period_1 EUR', '1.00'],
  ])
  expect(
    [...moneyRows('org_1', a, b)].map(({ row, rep, period, currency, a, b, difference }) =>
      [row, rep, period, currency, a, b, difference].join(' '),
    ),
  ).toEqual(['owed rep_1 period_1 EUR 100.00 110.00 10.00', 'paid rep_1 period_1 USD 5 0 -5'])
})

test('a record is added, removed, or changed with the first field that differs', () => {
  const record = (content: object) => ({ id: 'payout_1', rep: 'rep_1', period: 'period_1', content: { ...content } })
  const rowOf = (a: object | undefined, b: object | undefined) => {
    const row = recordRow('org_1', 'payouts', 'payout_1', a && record(a), b && record(b))
    return [row.change, row.rep, row.field, row.a, row.b]
  }
  expect(rowOf(undefined, {})).toEqual(['added', 'rep_1', null, null, null])
  expect(rowOf({}, undefined)).toEqual(['removed', 'rep_1', null, null, null])
  expect(rowOf({ net_amount: '1' }, { net_amount: '2' })).toEqual(['changed', 'rep_1', 'net_amount', '1', '2'])
  expect(rowOf({ line_items: [{ id: 'line_1' }] }, { line_items: [] })).toEqual([
    'changed',
    'rep_1',
    'line_items.0',
    '{"id":"line_1"}',
    null,
  ])
})

test('a record is compared without its offsets, and of a rep only the current version counts', () => {
  const recordOf = (kind: RecordKind, id: string, source: Record<string, unknown>) =>
    comparableRecordOf(kind, { id, source })
  const version = {
    first_seq: 1,
    seq: 5,
    until_seq: UNTIL_FOREVER,
    at: 7,
    hash: 'x',
    body: { id: 'rep_1', name: 'Ada' },
  }
  expect(recordOf('reps', 'org_1:rep_1:5', version)).toMatchObject({ id: 'rep_1', content: version.body })
  expect(recordOf('reps', 'org_1:rep_1:5', { ...version, until_seq: 9 })).toBeUndefined()
  expect(recordOf('reps', 'org_1:rep_1', { body: { versions: [] } })).toBeUndefined()
  const body = { id: 'payout_1', rep_id: 'rep_1', period_id: 'period_1', net_amount: '1' }
  expect(recordOf('payouts', 'org_1:payout_1', { seq: 3, until_seq: 4, superseded_by_id: 'payout_2', body })).toEqual({
    id: 'payout_1',
    rep: 'rep_1',
    period: 'period_1',
    content: { ...body, superseded_by_id: 'payout_2' },
  })
  expect(
    recordOf('parked', 't:0:3', { offset: 3, at: 9, code: 'rep_unknown', type: 'x', body: { key: null } })?.content,
  ).toEqual({
    code: 'rep_unknown',
    type: 'x',
    event_id: null,
    key: null,
  })
})
