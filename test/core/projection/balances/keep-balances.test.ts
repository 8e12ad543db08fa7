import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { BalanceKeeper } from '../../../../core/projection/balances/keep-balances.ts'
import { StopError } from '../../../../core/runtime/failures.ts'
import { Ledger, layout, ORG } from '../../../support/balance-ledger.ts'

/** A look for what is due, and the second computation. */
const MADE = 2

let ledger: Ledger
let keeper: BalanceKeeper

beforeEach(() => {
  ledger = new Ledger()
})
afterEach(() => keeper.stop())

const row = (owed_amount: string, owed_count: number, paid_amount = '0', paid_count = 0) => ({
  period_id: 'period_1',
  currency: 'EUR',
  owed_amount,
  owed_count,
  paid_amount,
  paid_count,
})

/** A decided document of a new record. */
const changed = (seq: number) => ({
  kind: 'payouts' as const,
  id: `${ORG}:payout_${seq}`,
  version: seq,
  draft: { seq } as never,
})

describe('balances', () => {
  test('are made after every third change, with the amounts that are owed and paid after it', async () => {
    ledger.rep(1)
    ledger.replace(4, '10.50', 6)
    ledger.payout(6, '11.25')
    ledger.payroll(8, '11.25')
    ledger.payroll(9, '-11.25')
    ledger.payout(12, '-0.05')
    ledger.payout(13, '1')
    ledger.publish(14)
    keeper = ledger.keeper()
    await ledger.pass(MADE + 1)
    const of = (sequence: number, seq: number, rows: object[]) => {
      const body = { rows }
      const [id, body_bytes] = [`${ORG}:${sequence}`, JSON.stringify(body).length]
      return { id, version: seq, org_id: ORG, seq, sequence, body_bytes, body }
    }
    expect(ledger.balances()).toEqual([of(3, 6, [row('11.25', 1)]), of(6, 12, [row('11.2', 2, '0', 2)])])
    expect(ledger.written).toBe(2)
    expect(ledger.told).toEqual([])
  })

  test('go on from those that an earlier process has made, and take back what was replaced since', async () => {
    for (const seq of [1, 2, 3]) ledger.payout(seq, '1.00')
    ledger.publish(4)
    keeper = ledger.keeper()
    await ledger.pass(MADE + 1)
    await keeper.stop()
    ledger.replace(2, '1.00', 4)
    ledger.replace(4, '5', 5)
    ledger.payout(5, '7')
    ledger.payout(6, '0.5')
    ledger.publish(7)
    keeper = ledger.keeper()
    await ledger.pass(MADE + 1)
    expect(ledger.balances()).toMatchObject([
      { sequence: 3, body: { rows: [row('3', 3)] } },
      { sequence: 6, seq: 6, body: { rows: [row('9.5', 4)] } },
    ])
  })

  test('count nothing that is written, but not published yet', async () => {
    for (const seq of [1, 2, 3]) ledger.payout(seq, '1')
    ledger.publish(3)
    keeper = ledger.keeper()
    await ledger.pass(MADE + 1)
    expect(ledger.balances()).toEqual([])
  })

  test('are due again after three further changes, without a search before that', async () => {
    keeper = ledger.keeper()
    await ledger.pass()
    const before = ledger.asked.length
    for (const seq of [1, 2]) ledger.payout(seq, '1')
    ledger.publish(3)
    keeper.countChanges([changed(1), changed(2), { ...changed(2), version: 9 }])
    await ledger.pass(MADE)
    expect(ledger.asked.length).toBe(before)
    ledger.payout(3, '1')
    ledger.publish(4)
    keeper.countChanges([changed(3)])
    await ledger.pass(MADE + 1)
    expect(ledger.balances()).toMatchObject([{ sequence: 3 }])
  })

  test('are not forgotten if their changes are counted before they are published', async () => {
    keeper = ledger.keeper()
    await ledger.pass()
    for (const seq of [1, 2, 3]) ledger.payout(seq, '1')
    keeper.countChanges([changed(1), changed(2), changed(3)])
    ledger.publish(3)
    await ledger.pass(MADE)
    ledger.publish(4)
    await ledger.pass(MADE + 1)
    expect(ledger.balances()).toMatchObject([{ sequence: 3 }])
  })

  test('are stored only if two computations agree: a removed node may have answered the first one', async () => {
    for (const seq of [1, 2, 3]) ledger.payout(seq, '1')
    ledger.publish(4)
    const records = ledger.indices.get(layout.indexOf('payouts'))
    const shard = records?.searchable.findIndex(documents => documents.size > 0) ?? 0
    const missing = records?.searchable[shard]?.get(`${ORG}:payout_1`)
    ledger.payout(4, '1')
    // The old copy lacks the first payout, so the third change seems to be a later one.
    records?.searchable[shard]?.delete(`${ORG}:payout_1`)
    ledger.publish(5)
    keeper = ledger.keeper()
    await ledger.pass()
    if (missing) records?.searchable[shard]?.set(missing.id, missing)
    await ledger.pass()
    expect(ledger.balances()).toEqual([])
    await ledger.pass(MADE)
    expect(ledger.balances()).toMatchObject([{ sequence: 3, seq: 3, body: { rows: [row('3', 3)] } }])
  })

  test('of a shard that lost documents are not stored: both computations agree on too little', async () => {
    for (const seq of [1, 2, 3]) ledger.payout(seq, '1')
    ledger.publish(4)
    ledger.assertSame = async () => {
      throw new StopError('index_replaced', 'a shard is another one')
    }
    keeper = ledger.keeper()
    await ledger.pass(MADE + 1)
    expect([ledger.balances(), ledger.told.length, ledger.failures]).toEqual([[], 1, []])
    ledger.assertSame = async () => undefined
    await ledger.pass(MADE + 1)
    expect(ledger.balances()).toMatchObject([{ sequence: 3 }])
  })

  test.each([
    ['while documents are removed that no log has', { removing: true as const }],
    ['while restored documents are read again', { serve_from: 9 }],
    ['beyond a position that was set back', { position: 2 }],
  ])('are not made %s', async (_, position) => {
    for (const seq of [1, 2, 3]) ledger.payout(seq, '1')
    ledger.publish(4)
    ledger.position = { ...ledger.position, ...position }
    keeper = ledger.keeper()
    await ledger.pass(MADE + 1)
    expect(ledger.balances()).toEqual([])
  })

  test('wait while the partition is far behind its end', async () => {
    for (const seq of [1, 2, 3]) ledger.payout(seq, '1')
    ledger.publish(4)
    ledger.progress = { ...ledger.progress, readTo: 50_000 }
    keeper = ledger.keeper()
    await ledger.pass(MADE + 1)
    expect(ledger.balances()).toEqual([])
    ledger.publish(4)
    await ledger.pass(MADE + 1)
    expect(ledger.balances()).toHaveLength(1)
  })

  test('are tried again after a failure, which the log names once', async () => {
    for (const seq of [1, 2, 3]) ledger.payout(seq, '1')
    ledger.publish(4)
    ledger.intercept = path => (path.endsWith('_search') ? { status: 503, body: {} } : undefined)
    keeper = ledger.keeper()
    await ledger.pass(5)
    expect(ledger.told).toHaveLength(1)
    ledger.intercept = path =>
      path.endsWith('_refresh') ? { status: 200, body: { _shards: { total: 2, successful: 1, failed: 0 } } } : undefined
    await ledger.pass(MADE + 1)
    ledger.intercept = () => undefined
    await ledger.pass(MADE + 1)
    expect(ledger.balances()).toHaveLength(1)
    // Stored before the refresh failed, and found equal the second time.
    expect(ledger.written).toBe(1)
  })

  test.each([
    ['of the same change', 3],
    ['of an earlier change', 2],
  ])('%s with another content end each stream before either is searchable', async (_, seq) => {
    for (const seq of [1, 2, 3]) ledger.payout(seq, '1')
    ledger.publish(4)
    const index = layout.indexOf('balances')
    const wrong = { org_id: ORG, seq, sequence: 3, body_bytes: 11, body: { rows: [] } }
    ledger.indices.get(index)?.write({ _id: `${ORG}:3` }, seq, JSON.stringify(wrong), wrong)
    keeper = ledger.keeper()
    await ledger.pass(2)
    const failure = { code: 'content_differs', where: { index: expect.stringMatching(`^${index}`), version: 3 } }
    expect(ledger.failures).toMatchObject([failure])
    await keeper.stop()
    keeper = ledger.keeper()
    await ledger.pass(2)
    expect(ledger.failures).toMatchObject([failure, failure])
    expect(ledger.balances()).toMatchObject([wrong])
    expect(ledger.asked).not.toContain(`/${index}/_refresh`)
  })

  test.each([3, 2])('with another content, written by others beside the keeper at %i, end the stream', async seq => {
    for (const seq of [1, 2, 3]) ledger.payout(seq, '1')
    ledger.publish(4)
    const index = layout.indexOf('balances')
    const wrong = { org_id: ORG, seq, sequence: 3, body_bytes: 11, body: { rows: [] } }
    ledger.intercept = (_, query) => {
      const isWrite = 'pipeline' in query
      if (isWrite) ledger.indices.get(index)?.write({ _id: `${ORG}:3` }, seq, JSON.stringify(wrong), wrong)
      return undefined
    }
    keeper = ledger.keeper()
    await ledger.pass(2)
    expect(ledger.failures).toMatchObject([{ code: 'content_differs' }])
    expect(ledger.asked).not.toContain(`/${index}/_refresh`)
  })

  test('that went through an ingest pipeline of others end the stream before they are searchable', async () => {
    for (const seq of [1, 2, 3]) ledger.payout(seq, '1')
    ledger.publish(4)
    const item = { status: 201, result: 'created', executed_pipelines: ['round'] }
    // The read of the position is a bulk request, too.
    ledger.intercept = (_, query) =>
      'pipeline' in query ? { status: 200, body: { items: [{ index: item }] } } : undefined
    keeper = ledger.keeper()
    await ledger.pass(2)
    const failure = { code: 'index_unsuitable', message: expect.stringContaining('an ingest pipeline ran: round;') }
    expect(ledger.failures).toMatchObject([failure])
    expect(ledger.asked).not.toContain(`/${layout.indexOf('balances')}/_refresh`)
  })
})
