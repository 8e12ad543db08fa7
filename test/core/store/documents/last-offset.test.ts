/** The last offset that a stored document shows is its version: otherwise somebody else wrote the document. */
import { expect, test } from 'vitest'
import { lastOffsetIn } from '../../../../core/store/documents/documents.ts'
import { UNTIL_FOREVER } from '../../../../schemas/limits.ts'

const unknown = Number.POSITIVE_INFINITY

test.each<[string, unknown, number]>([
  ['a payout or version', { seq: 7, until_seq: UNTIL_FOREVER, body: { id: 'payout_1' } }, 7],
  ['a payout or version that was replaced', { seq: 7, until_seq: 9, body: { id: 'payout_1' } }, 9],
  ['a payroll record or a statement', { seq: 7, body: { calculation_trace: [] } }, 7],
  ['a parked record', { code: 'data_invalid', offset: 0, body: { value: null } }, 0],
  ['the head of a rep or period', { body: { versions: [{ seq: 1 }, { seq: 4 }] } }, 4],
  ['a chain that ends with a payroll record', { body: { payouts: [{ seq: 3 }], payroll: [{ seq: 5 }] } }, 5],
  ['a chain without payroll records', { body: { payouts: [{ seq: 3 }, { seq: 8 }], payroll: [] } }, 8],
  ['an API key', { revoked: false, body: { created_seq: 2 } }, 2],
  ['a revoked API key', { revoked: true, body: { created_seq: 2 } }, unknown],
  ['the head of an API key', { body: { created_seq: 2, revoked_seq: null } }, 2],
  ['the head of a revoked API key', { body: { created_seq: 2, revoked_seq: 3 } }, 3],
  ['a document of another form', { other: true }, unknown],
  ['no document', undefined, unknown],
])('%s', (_, stored, offset) => {
  expect(lastOffsetIn(stored)).toBe(offset)
})
