import { describe, expect, test } from 'vitest'
import { CHAIN_LENGTH_MAX } from '../../../../schemas/limits.ts'
import type { ChainBody } from '../../../../schemas/stored/documents.ts'
import { Documents, type Given, tell, tellAfter } from '../../../projector/given.ts'
import type { Event } from '../../../projector/records.ts'
import { payment, payout, period, rep, voided } from '../../../projector/story.ts'
import * as examples from '../../../schemas/examples.ts'

const known: [Event, string][] = [
  [rep(), 'applied'],
  [period(), 'applied'],
]

describe('a payment', () => {
  test('of a known rep and period is applied, with all its fields in its documents', async () => {
    const documents = await tell(
      ...known,
      [payout('payout_1'), 'applied'],
      [payment('payroll_1', { payout_id: 'payout_1' }), 'applied'],
    )
    const { org_id: _, ...body } = examples.payment
    expect(documents.get('payroll_files/org_1:payroll_1')).toEqual({
      org_id: 'org_1',
      seq: 3,
      at: 1_003,
      rep_id: 'rep_1',
      period_id: 'period_1',
      reverses_id: null,
      amount: '100.00',
      currency: 'EUR',
      hash: expect.any(String),
      body: { ...body, reverses_id: null },
    })
    expect(documents.get('chains/org_1:rep_1:period_1')).toEqual({
      org_id: 'org_1',
      body: { payouts: [{ seq: 2, id: 'payout_1' }], payroll: [{ seq: 3, id: 'payroll_1', reverses_id: null }] },
    })
  })

  test('does not change the payouts of a chain, and a payout does not change the payments', async () => {
    const documents = await tell(
      ...known,
      [payout('payout_1'), 'applied'],
      [payment('payroll_1'), 'applied'],
      [payout('payout_2', 'payout_1'), 'applied'],
      [voided('payroll_2', 'payroll_1'), 'applied'],
    )
    expect(documents.get('chains/org_1:rep_1:period_1')).toMatchObject({
      body: {
        payouts: [
          { seq: 2, id: 'payout_1' },
          { seq: 4, id: 'payout_2' },
        ],
        payroll: [
          { seq: 3, id: 'payroll_1', reverses_id: null },
          { seq: 5, id: 'payroll_2', reverses_id: 'payroll_1' },
        ],
      },
    })
  })

  test('before its rep is rep_unknown, before its period period_unknown', async () => {
    await tell(
      [payment('payroll_1'), 'rep_unknown'],
      [rep(), 'applied'],
      [payment('payroll_1'), 'period_unknown'],
      [period(), 'applied'],
      [payment('payroll_1'), 'applied'],
    )
  })

  test('names a payout of the same rep and period, current or superseded, or none', async () => {
    await tell(
      ...known,
      [rep({ id: 'rep_2' }), 'applied'],
      [payment('payroll_1', { payout_id: 'payout_1' }), 'payout_mismatch'],
      [payout('payout_1'), 'applied'],
      [payment('payroll_1', { payout_id: 'payout_2' }), 'payout_mismatch'],
      [payout('payout_2', 'payout_1'), 'applied'],
      [payment('payroll_2', { payout_id: 'payout_1', rep_id: 'rep_2' }), 'payout_mismatch'],
      [payment('payroll_1', { payout_id: 'payout_1' }), 'applied'],
      [payment('payroll_2', { payout_id: null, rep_id: 'rep_2' }), 'applied'],
    )
  })

  test('is one at a time for a rep and period: a second one needs a void first', async () => {
    await tell(
      ...known,
      [rep({ id: 'rep_2' }), 'applied'],
      [payment('payroll_1'), 'applied'],
      [payment('payroll_2'), 'payroll_already_recorded'],
      [payment('payroll_2', { payout_id: 'payout_9' }), 'payout_mismatch'],
      [payment('payroll_3', { rep_id: 'rep_2' }), 'applied'],
      [voided('payroll_4', 'payroll_1'), 'applied'],
      [payment('payroll_2'), 'applied'],
      [payment('payroll_5'), 'payroll_already_recorded'],
      [voided('payroll_6', 'payroll_2'), 'applied'],
      [payment('payroll_5'), 'applied'],
    )
  })

  test('again is a duplicate, even after its void; with other data it is id_reused', async () => {
    await tell(
      ...known,
      [payment('payroll_1'), 'applied'],
      [payment('payroll_1'), 'duplicate'],
      [payment('payroll_1', { amount: '100.000' }), 'id_reused'],
      [payment('payroll_1', { rep_id: 'rep_9' }), 'id_reused'],
      [voided('payroll_2', 'payroll_1'), 'applied'],
      [payment('payroll_1'), 'duplicate'],
      [payment('payroll_2'), 'id_reused'],
      [payment('payroll_3'), 'applied'],
      [payment('payroll_1'), 'duplicate'],
    )
  })

  test('of another organization does not affect this one', async () => {
    const other = { org_id: 'org_2' }
    await tell(
      ...known,
      [payment('payroll_1'), 'applied'],
      [payment('payroll_1', other), 'rep_unknown'],
      [rep(other), 'applied'],
      [period(other), 'applied'],
      [payment('payroll_1', other), 'applied'],
      [voided('payroll_2', 'payroll_1', other), 'applied'],
      [payment('payroll_3'), 'payroll_already_recorded'],
    )
  })
})

describe('a void', () => {
  test('is a separate record with the rep, period, payout and destination of the record it reverses', async () => {
    const documents = await tell(
      ...known,
      [payout('payout_1'), 'applied'],
      [payment('payroll_1', { payout_id: 'payout_1' }), 'applied'],
      [voided('payroll_2', 'payroll_1', { amount: '-100' }), 'applied'],
    )
    expect(documents.get('payroll_files/org_1:payroll_2')).toEqual({
      org_id: 'org_1',
      seq: 4,
      at: 1_004,
      rep_id: 'rep_1',
      period_id: 'period_1',
      reverses_id: 'payroll_1',
      amount: '-100',
      currency: 'EUR',
      hash: expect.any(String),
      body: {
        id: 'payroll_2',
        rep_id: 'rep_1',
        period_id: 'period_1',
        payout_id: 'payout_1',
        reverses_id: 'payroll_1',
        amount: '-100',
        currency: 'EUR',
        destination: examples.payment.destination,
        recorded_at: examples.voided.recorded_at,
      },
    })
    expect(documents.get('payroll_files/org_1:payroll_1')).toMatchObject({ seq: 3, body: { amount: '100.00' } })
  })

  test.each<[string, Parameters<typeof voided>[2], string]>([
    ['the same value in other digits', { amount: '-100.0000' }, 'applied'],
    ['a cent less', { amount: '-99.99' }, 'payroll_reversal_invalid'],
    ['the smallest unit more', { amount: `-100.${'0'.repeat(39)}1` }, 'payroll_reversal_invalid'],
    ['the same sign', { amount: '100.00' }, 'payroll_reversal_invalid'],
    ['another currency', { currency: 'USD' }, 'payroll_reversal_invalid'],
  ])('with %s', async (_, change, outcome) => {
    await tell(...known, [payment('payroll_1'), 'applied'], [voided('payroll_2', 'payroll_1', change), outcome])
  })

  test('of a zero amount is also zero: zero has no sign', async () => {
    const zero = { amount: '0.00' }
    await tell(...known, [payment('payroll_1', zero), 'applied'], [voided('payroll_2', 'payroll_1', zero), 'applied'])
  })

  test('of a negative payment is positive', async () => {
    await tell(
      ...known,
      [payment('payroll_1', { amount: '-5' }), 'applied'],
      [voided('payroll_2', 'payroll_1', { amount: '5.0' }), 'applied'],
    )
  })

  test('reverses a payment only once, and neither a void nor a missing record', async () => {
    await tell(
      ...known,
      [voided('payroll_2', 'payroll_1'), 'payroll_reversal_invalid'],
      [payment('payroll_1'), 'applied'],
      [voided('payroll_2', 'payroll_2'), 'payroll_reversal_invalid'],
      [voided('payroll_2', 'payroll_9'), 'payroll_reversal_invalid'],
      [voided('payroll_2', 'payroll_1'), 'applied'],
      [voided('payroll_3', 'payroll_1'), 'payroll_reversal_invalid'],
      [voided('payroll_3', 'payroll_2', { amount: '100.00' }), 'payroll_reversal_invalid'],
    )
  })

  test('of another organization reverses nothing of this one', async () => {
    await tell(
      ...known,
      [payment('payroll_1'), 'applied'],
      [voided('payroll_2', 'payroll_1', { org_id: 'org_2' }), 'payroll_reversal_invalid'],
    )
  })

  test('again is a duplicate; with other data, or as a payment, its id is reused', async () => {
    await tell(
      ...known,
      [payment('payroll_1'), 'applied'],
      [voided('payroll_2', 'payroll_1'), 'applied'],
      [voided('payroll_2', 'payroll_1'), 'duplicate'],
      [voided('payroll_2', 'payroll_1', { amount: '-100' }), 'id_reused'],
      [voided('payroll_1', 'payroll_1'), 'id_reused'],
      [payment('payroll_2'), 'id_reused'],
    )
  })
})

describe('a chain', () => {
  /** A chain with this number of payroll records: payments and their voids in turn, then a last payment. */
  const withPayroll = async (count: number): Promise<Given> => {
    const start = { documents: new Documents(), from: 20_000 }
    const documents = await tellAfter(start, ...known, [payment('payroll_last'), 'applied'])
    const payroll: ChainBody['payroll'] = Array.from({ length: count - 1 }, (_, seq) => ({
      seq,
      id: `payroll_x${seq}`,
      reverses_id: seq % 2 === 0 ? null : `payroll_x${seq - 1}`,
    }))
    payroll.push({ seq: 20_002, id: 'payroll_last', reverses_id: null })
    documents.put('chains/org_1:rep_1:period_1', 20_002, { org_id: 'org_1', body: { payouts: [], payroll } })
    return { documents, from: 30_000 }
  }

  test('takes 10,000 payroll records, including voids, and no more', async () => {
    await tellAfter(
      await withPayroll(CHAIN_LENGTH_MAX - 1),
      [voided('payroll_a', 'payroll_last'), 'applied'],
      [payment('payroll_b'), 'chain_too_long'],
    )
    await tellAfter(
      await withPayroll(CHAIN_LENGTH_MAX + 1),
      [payment('payroll_b'), 'payroll_already_recorded'],
      [voided('payroll_a', 'payroll_last', { currency: 'USD' }), 'payroll_reversal_invalid'],
      [voided('payroll_a', 'payroll_last'), 'chain_too_long'],
      [payment('payroll_last'), 'duplicate'],
    )
  })

  test('that is full of payroll records still takes payouts', async () => {
    await tellAfter(await withPayroll(CHAIN_LENGTH_MAX + 1), [payout('payout_1'), 'applied'])
  })
})
