/** The form of each kind of document before a position, with the version that it had then. */
import { expect, test } from 'vitest'
import { UNTIL_FOREVER } from '../../../schemas/limits.ts'
import { earlierForm } from '../../../tools/leftovers/earlier-form.ts'

test('a payout or version that a later event replaced gets the version of its own event', () => {
  const payout = { seq: 2, until_seq: 7, superseded_by_id: 'payout_2', body_bytes: 2, body: {} }
  const current = { ...payout, until_seq: UNTIL_FOREVER, superseded_by_id: null }
  expect(earlierForm('payouts', payout, 7)).toEqual({ version: 2, source: current })
  expect(earlierForm('payouts', payout, 2)).toBeUndefined()
  const version = { first_seq: 1, seq: 3, until_seq: 9, body_bytes: 2, body: {} }
  expect(earlierForm('reps', version, 8)).toEqual({ version: 3, source: { ...version, until_seq: UNTIL_FOREVER } })
  expect(earlierForm('periods', version, 10)).toEqual({ version: 9, source: version })
})

test('a chain or head gets the version of its last event before the position, and the size of what is left', () => {
  const body = {
    payouts: [
      { seq: 2, id: 'payout_1' },
      { seq: 9, id: 'payout_2' },
    ],
    payroll: [{ seq: 4, id: 'payroll_1', reverses_id: null }],
  }
  const chain = { org_id: 'org_1', body_bytes: JSON.stringify(body).length, body }
  const before = { payouts: [{ seq: 2, id: 'payout_1' }], payroll: body.payroll }
  const source = { org_id: 'org_1', body_bytes: JSON.stringify(before).length, body: before }
  expect(earlierForm('chains', chain, 9)).toEqual({ version: 4, source })
  expect(earlierForm('chains', chain, 2)).toBeUndefined()
  const head = { org_id: 'org_1', body_bytes: 60, body: { versions: [{ seq: 1 }, { seq: 30 }] } }
  expect(earlierForm('reps', head, 30)).toMatchObject({ version: 1, source: { body: { versions: [{ seq: 1 }] } } })
})

test('records that nothing touches again are as they were, or were not', () => {
  expect(earlierForm('statements', { seq: 4, body: {} }, 4)).toBeUndefined()
  expect(earlierForm('payroll_files', { seq: 4, body: {} }, 5)).toMatchObject({ version: 4 })
  expect(earlierForm('parked', { offset: 4, partition: 0 }, 4)).toBeUndefined()
  expect(earlierForm('parked', { offset: 4, partition: 0 }, 5)).toMatchObject({ version: 4 })
})

test('an API key that a later event revoked is as it was created, by its hash and by its id', () => {
  const key = { key_id: 'key_1', org_id: 'org_1', permissions: ['read'], revoked: true, body: { created_seq: 3 } }
  expect(earlierForm('api-keys', key, 5)).toEqual({ version: 3, source: { ...key, revoked: false } })
  expect(earlierForm('api-keys', key, 3)).toBeUndefined()
  const body = { secret_sha256: 'a', hash: 'b', created_seq: 3, revoked_seq: 5, name: 'n' }
  const head = { org_id: 'org_1', body_bytes: JSON.stringify(body).length, body }
  const before = { ...body, revoked_seq: null }
  const source = { org_id: 'org_1', body_bytes: JSON.stringify(before).length, body: before }
  expect(earlierForm('api-keys', head, 5)).toEqual({ version: 3, source })
  expect(earlierForm('api-keys', head, 6)).toEqual({ version: 5, source: head })
  expect(earlierForm('api-keys', head, 3)).toBeUndefined()
})
