import { describe, expect, test } from 'vitest'
import { PayoutCalculated, PayoutRecorded } from '../../../../schemas/events.ts'
import { CHAIN_LENGTH_MAX, UNTIL_FOREVER } from '../../../../schemas/limits.ts'
import { keysOf } from '../../../../schemas/objects.ts'
import type { ChainBody } from '../../../../schemas/stored/documents.ts'
import { Documents, type Given, tell, tellAfter } from '../../../projector/given.ts'
import type { Event } from '../../../projector/records.ts'
import { payout, period, recordedPayout, rep } from '../../../projector/story.ts'
import { calculated, line, recorded, step } from '../../../schemas/examples.ts'

const known: [Event, string][] = [
  [rep(), 'applied'],
  [period(), 'applied'],
]

describe('a payout', () => {
  test('of a known rep and period is applied, with all its fields in its documents', async () => {
    const documents = await tell(...known, [payout('payout_1'), 'applied'])
    expect(documents.get('payouts/org_1:payout_1')).toEqual({
      org_id: 'org_1',
      seq: 2,
      until_seq: UNTIL_FOREVER,
      superseded_by_id: null,
      at: 1_002,
      rep_id: 'rep_1',
      period_id: 'period_1',
      amount: '100.00',
      currency: 'EUR',
      hash: expect.any(String),
      body: {
        id: 'payout_1',
        rep_id: 'rep_1',
        period_id: 'period_1',
        net_amount: '100.00',
        earned_amount: '100.00',
        currency: 'EUR',
        supersedes_id: null,
        calculated_at: calculated.calculated_at,
        recorded_at: null,
        line_items: [line],
      },
    })
    expect(documents.get('statements/org_1:payout_1')).toEqual({
      org_id: 'org_1',
      seq: 2,
      body: { calculation_trace_recorded: true, calculation_trace: [step] },
    })
    expect(documents.get('chains/org_1:rep_1:period_1')).toEqual({
      org_id: 'org_1',
      body: { payouts: [{ seq: 2, id: 'payout_1' }], payroll: [] },
    })
  })

  test.each([
    ['calculated', PayoutCalculated, payout('payout_1'), calculated],
    ['recorded', PayoutRecorded, recordedPayout('payout_1'), recorded],
  ] as const)('that was %s is stored with each field of its schema', async (_, schema, event, example) => {
    const documents = await tell(...known, [event, 'applied'])
    const { body, org_id } = documents.get('payouts/org_1:payout_1') as { readonly body: object; org_id: string }
    const statement = documents.get('statements/org_1:payout_1') as { readonly body: object }
    const stored = { org_id, ...body, ...statement.body }
    for (const name of keysOf(schema.properties)) {
      // A field that the example lacks would be missed here.
      expect(example).toHaveProperty(name)
      expect(stored, 'add it to payoutDraft').toHaveProperty(name, example[name as keyof typeof example])
    }
  })

  test('that was recorded has no trace, and has the time when it was recorded', async () => {
    const documents = await tell(...known, [recordedPayout('payout_1'), 'applied'])
    expect(documents.get('payouts/org_1:payout_1')).toMatchObject({
      body: { calculated_at: null, recorded_at: recorded.recorded_at },
    })
    expect(documents.get('statements/org_1:payout_1')).toMatchObject({
      body: { calculation_trace_recorded: false, calculation_trace: [] },
    })
  })

  test('before its rep is rep_unknown, before its period period_unknown, whatever comes later', async () => {
    await tell(
      [payout('payout_1'), 'rep_unknown'],
      [rep(), 'applied'],
      [payout('payout_1'), 'period_unknown'],
      [period(), 'applied'],
      [payout('payout_1'), 'applied'],
    )
  })

  test('of another organization does not see reps and periods of this one', async () => {
    const other = { org_id: 'org_2' }
    await tell(
      ...known,
      [payout('payout_1', null, other), 'rep_unknown'],
      [rep(other), 'applied'],
      [payout('payout_1', null, other), 'period_unknown'],
    )
  })

  test('of another organization may have the same id', async () => {
    const other = { org_id: 'org_2' }
    const documents = await tell(
      ...known,
      [payout('payout_1'), 'applied'],
      [rep(other), 'applied'],
      [period(other), 'applied'],
      [payout('payout_1', null, { ...other, currency: 'USD' }), 'applied'],
    )
    expect(documents.get('payouts/org_1:payout_1')).toMatchObject({ body: { currency: 'EUR' } })
    expect(documents.get('payouts/org_2:payout_1')).toMatchObject({ body: { currency: 'USD' } })
  })

  test('again is a duplicate, even after it was superseded; with other data it is id_reused', async () => {
    await tell(
      ...known,
      [payout('payout_1'), 'applied'],
      [payout('payout_1'), 'duplicate'],
      [payout('payout_2', 'payout_1'), 'applied'],
      [payout('payout_1'), 'duplicate'],
      [payout('payout_1', null, { earned_amount: '100.0' }), 'id_reused'],
      [payout('payout_1', 'payout_2'), 'id_reused'],
      [payout('payout_1', null, { rep_id: 'rep_9' }), 'id_reused'],
      [recordedPayout('payout_1'), 'id_reused'],
      [payout('payout_2', 'payout_1'), 'duplicate'],
    )
  })
})

describe('a recalculation', () => {
  test('supersedes the current payout at its own offset, and both stay', async () => {
    const documents = await tell(
      ...known,
      [payout('payout_1'), 'applied'],
      [payout('payout_2', 'payout_1', { currency: 'USD' }), 'applied'],
      [recordedPayout('payout_3', 'payout_2'), 'applied'],
    )
    const stored = ['payout_1', 'payout_2', 'payout_3'].map(id => documents.get(`payouts/org_1:${id}`))
    expect(stored).toMatchObject([
      { seq: 2, until_seq: 3, superseded_by_id: 'payout_2', at: 1_002, body: { currency: 'EUR' } },
      { seq: 3, until_seq: 4, superseded_by_id: 'payout_3', at: 1_003, body: { currency: 'USD' } },
      { seq: 4, until_seq: UNTIL_FOREVER, superseded_by_id: null, at: 1_004 },
    ])
    expect(documents.get('chains/org_1:rep_1:period_1')).toMatchObject({
      body: { payouts: ['payout_1', 'payout_2', 'payout_3'].map((id, at) => ({ seq: at + 2, id })) },
    })
  })

  test('must name exactly the current payout of its rep and period', async () => {
    const [rep2, period2] = [{ rep_id: 'rep_2' }, { period_id: 'period_2' }]
    await tell(
      ...known,
      [rep({ id: 'rep_2' }), 'applied'],
      [period({ id: 'period_2' }), 'applied'],
      [payout('payout_1', 'payout_0'), 'supersedes_mismatch'],
      [payout('payout_1', 'payout_1'), 'supersedes_mismatch'],
      [payout('payout_1'), 'applied'],
      [payout('payout_2'), 'supersedes_mismatch'],
      [payout('payout_2', 'payout_2'), 'supersedes_mismatch'],
      [payout('payout_2', 'payout_3'), 'supersedes_mismatch'],
      [payout('payout_2', 'payout_1', rep2), 'supersedes_mismatch'],
      [payout('payout_2', 'payout_1', period2), 'supersedes_mismatch'],
      [payout('payout_2', 'payout_1'), 'applied'],
      [payout('payout_3', 'payout_1'), 'supersedes_mismatch'],
      [payout('payout_3', 'payout_2'), 'applied'],
      [payout('payout_4', null, rep2), 'applied'],
      [payout('payout_5', 'payout_3', rep2), 'supersedes_mismatch'],
    )
  })

  test('that was parked reserves nothing: its id is free, and the payout that it named stays current', async () => {
    const documents = await tell(
      ...known,
      [payout('payout_1'), 'applied'],
      [payout('payout_2', 'payout_9'), 'supersedes_mismatch'],
      [payout('payout_2', 'payout_1', { earned_amount: '1' }), 'applied'],
    )
    expect(documents.get('payouts/org_1:payout_2')).toMatchObject({ seq: 4, body: { earned_amount: '1' } })
    expect(documents.get('payouts/org_1:payout_1')).toMatchObject({ until_seq: 4 })
  })

  test('works after its rep and period were recorded again', async () => {
    await tell(
      ...known,
      [payout('payout_1'), 'applied'],
      [rep({ status: 'departed' }), 'applied'],
      [period({ name: 'Jan' }), 'applied'],
      [payout('payout_2', 'payout_1'), 'applied'],
    )
  })
})

describe('a chain', () => {
  /** A chain with this number of payouts. The current one is `payout_last`. */
  const withPayouts = async (count: number): Promise<Given> => {
    const start = { documents: new Documents(), from: 20_000 }
    const documents = await tellAfter(start, ...known, [payout('payout_last'), 'applied'])
    const payouts: ChainBody['payouts'] = Array.from({ length: count - 1 }, (_, seq) => ({ seq, id: `payout_${seq}` }))
    payouts.push({ seq: 20_002, id: 'payout_last' })
    documents.put('chains/org_1:rep_1:period_1', 20_002, { org_id: 'org_1', body: { payouts, payroll: [] } })
    return { documents, from: 30_000 }
  }

  test('takes 10,000 payouts and no more', async () => {
    await tellAfter(
      await withPayouts(CHAIN_LENGTH_MAX - 1),
      [payout('payout_a', 'payout_last'), 'applied'],
      [payout('payout_b', 'payout_a'), 'chain_too_long'],
    )
  })

  test('that is full still reports other errors and duplicates first', async () => {
    await tellAfter(
      await withPayouts(CHAIN_LENGTH_MAX),
      [payout('payout_a'), 'supersedes_mismatch'],
      [payout('payout_last'), 'duplicate'],
      [payout('payout_a', 'payout_last'), 'chain_too_long'],
    )
  })
})
