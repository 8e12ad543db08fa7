import { expect, test } from 'vitest'
import { UNTIL_FOREVER } from '../../../schemas/limits.ts'
import type { Kind } from '../../../schemas/stored/documents.ts'
import { asOf } from '../../../tools/documents/as-of.ts'

const then = (kind: Kind, source: Record<string, unknown>, position: number) =>
  asOf(kind, { id: 'x', source }, position)?.source

test('a record made at the position or later is left out', () => {
  const payout = { seq: 5, until_seq: UNTIL_FOREVER, superseded_by_id: null }
  expect(then('payouts', payout, 5)).toBeUndefined()
  expect(then('payouts', payout, 6)).toEqual(payout)
  expect(then('statements', { seq: 5, body: {} }, 5)).toBeUndefined()
  expect(then('parked', { offset: 5, partition: 0, code: 'rep_unknown' }, 5)).toBeUndefined()
  expect(then('parked', { offset: 5, partition: 0, code: 'rep_unknown' }, 6)).toMatchObject({ offset: 5 })
})

test('a record superseded at the position or later is current', () => {
  const replaced = { seq: 2, until_seq: 5, superseded_by_id: 'payout_2' }
  expect(then('payouts', replaced, 5)).toEqual({ seq: 2, until_seq: UNTIL_FOREVER, superseded_by_id: null })
  expect(then('payouts', replaced, 6)).toEqual(replaced)
  expect(then('reps', { seq: 2, until_seq: 5 }, 4)).toEqual({ seq: 2, until_seq: UNTIL_FOREVER })
  expect(then('payroll_files', { seq: 2 }, 4)).toEqual({ seq: 2 })
})

test('a list of events ends before the position; a list without earlier events is left out', () => {
  const chain = { org_id: 'o', body_bytes: 54, body: { payouts: [{ seq: 2 }, { seq: 5 }], payroll: [{ seq: 6 }] } }
  const before = { payouts: [{ seq: 2 }, { seq: 5 }], payroll: [] }
  expect(then('chains', chain, 6)).toMatchObject({ org_id: 'o', body: before })
  expect(then('chains', chain, 2)).toBeUndefined()
  expect(then('periods', { org_id: 'o', body: { versions: [{ seq: 1 }, { seq: 3 }] } }, 3)).toMatchObject({
    body: { versions: [{ seq: 1 }] },
  })
})

test('a record keeps the stored size of its body; a list gets its earlier size, with the same error as now', () => {
  expect(then('payouts', { seq: 5, until_seq: UNTIL_FOREVER, body_bytes: 3, body: {} }, 6)).toMatchObject({
    body_bytes: 3,
  })
  expect(then('parked', { offset: 5, body_bytes: 3, body: {} }, 6)).toMatchObject({ body_bytes: 3 })
  const [now, before] = [{ versions: [{ seq: 1 }, { seq: 30 }] }, { versions: [{ seq: 1 }] }]
  const bytesOf = (body: object) => JSON.stringify(body).length
  for (const wrong of [0, 1, -3]) {
    const stored = { org_id: 'o', body_bytes: bytesOf(now) + wrong, body: now }
    expect(then('reps', stored, 20)).toEqual({ org_id: 'o', body_bytes: bytesOf(before) + wrong, body: before })
  }
})
