import { expect, test } from 'vitest'
import { asOf } from '../../commands/projection/as-of.ts'
import type { Kind } from '../../schemas/documents.ts'
import { UNTIL_FOREVER } from '../../schemas/limits.ts'

const then = (kind: Kind, source: Record<string, unknown>, position: number) =>
  asOf(kind, { id: 'x', source: { body_bytes: 7, ...source } }, position)?.source

test('what was made at the position or later was not there', () => {
  const payout = { seq: 5, until_seq: UNTIL_FOREVER, superseded_by_id: null }
  expect(then('payouts', payout, 5)).toBeUndefined()
  expect(then('payouts', payout, 6)).toEqual(payout)
  expect(then('statements', { seq: 5, body: {} }, 5)).toBeUndefined()
  expect(then('parked', { offset: 5, partition: 0, code: 'rep_unknown' }, 5)).toBeUndefined()
  expect(then('parked', { offset: 5, partition: 0, code: 'rep_unknown' }, 6)).toMatchObject({ offset: 5 })
})

test('what was replaced at the position or later was current', () => {
  const replaced = { seq: 2, until_seq: 5, superseded_by_id: 'payout_2' }
  expect(then('payouts', replaced, 5)).toEqual({ seq: 2, until_seq: UNTIL_FOREVER, superseded_by_id: null })
  expect(then('payouts', replaced, 6)).toEqual(replaced)
  expect(then('reps', { seq: 2, until_seq: 5 }, 4)).toEqual({ seq: 2, until_seq: UNTIL_FOREVER })
  expect(then('payroll_files', { seq: 2 }, 4)).toEqual({ seq: 2 })
})

test('a list of what happened ends before the position; one in which nothing had happened was not there', () => {
  const chain = { org_id: 'o', body: { payouts: [{ seq: 2 }, { seq: 5 }], payroll: [{ seq: 6 }] } }
  expect(then('chains', chain, 6)).toEqual({ org_id: 'o', body: { payouts: [{ seq: 2 }, { seq: 5 }], payroll: [] } })
  expect(then('chains', chain, 2)).toBeUndefined()
  expect(then('periods', { org_id: 'o', body: { versions: [{ seq: 1 }, { seq: 3 }] } }, 3)).toMatchObject({
    body: { versions: [{ seq: 1 }] },
  })
})
