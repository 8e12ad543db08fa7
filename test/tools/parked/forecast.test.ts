/** The forecast for parked records, one after the other: only records that are sent count for later ones. */
import { describe, expect, test } from 'vitest'
import { Cache } from '../../../core/ledger/decide/cache.ts'
import type { AnyNewDocument, DocumentKey } from '../../../core/ledger/rules/state.ts'
import { partitionOf } from '../../../schemas/partition.ts'
import { layoutOf } from '../../../schemas/stored/layout.ts'
import { decideRecord } from '../../../tools/parked/decide-record.ts'
import type { Parked } from '../../../tools/parked/find.ts'
import { createForecaster, type Forecast, type Forecaster } from '../../../tools/parked/forecast.ts'
import { binaryHeaders, record } from '../../projector/records.ts'
import { payoutCalculated, periodRecorded, repRecorded } from '../../support/events.ts'

const org_id = 'org_1'
const [topic, partitions] = ['t', 1]
const stream = {
  stream: 'events',
  identity: { generation: 'g1', topic, cluster_id: 'c', partitions, rules_version: 2 },
  layout: layoutOf('p', { generation: 'g1', topic: 't' }),
} as const

const parked = ({ key, value, headers }: ReturnType<typeof repRecorded>, offset: number): Parked => ({
  fields: { code: 'rep_unknown', topic, partition: partitionOf(org_id, partitions), offset, at: offset },
  record: record({ offset, timestamp: offset, key, value, headers: binaryHeaders(String(headers?.ce_type)) }),
  leftOut: undefined,
})
const rep = parked(repRecorded({ org_id, id: 'rep_1' }), 1)
const period = parked(periodRecorded({ org_id, id: 'period_1' }), 2)
const payout = parked(payoutCalculated({ org_id, id: 'payout_1' }), 3)

const foresee = async (...asked: readonly (readonly [Parked, (forecast: Forecast) => boolean])[]) => {
  const forecaster = createForecaster(stream, async keys => new Map(keys.map(key => [key, null])))
  const outcomes: string[] = []
  for (const [item, isSent] of asked) {
    const forecast = await forecaster.next(item, isSent)
    outcomes.push('code' in forecast ? forecast.code : forecast.outcome)
  }
  return outcomes
}
const [sent, held] = [() => true, () => false]

test('a record that is sent counts for the records after it', async () => {
  expect(await foresee([rep, sent], [period, sent], [payout, sent], [payout, sent])).toEqual([
    'applied',
    'applied',
    'applied',
    'duplicate',
  ])
})

test('a record that is not sent does not count, whatever its forecast is', async () => {
  expect(await foresee([rep, held], [period, sent], [payout, sent])).toEqual(['applied', 'applied', 'rep_unknown'])
  expect(await foresee([rep, sent], [period, held], [payout, sent])).toEqual(['applied', 'applied', 'period_unknown'])
  expect(await foresee([rep, held], [rep, sent], [rep, sent])).toEqual(['applied', 'applied', 'duplicate'])
})

/** A store in which records are applied at an offset, and a forecaster that reads it. */
const storing = () => {
  const documents = new Map<DocumentKey, AnyNewDocument>()
  const read = async (keys: readonly DocumentKey[]) => new Map(keys.map(key => [key, documents.get(key) ?? null]))
  const apply = async ({ record }: Parked, offset: number): Promise<void> => {
    const source = { stream: 'events', topic, partition: 0, partitions } as const
    const decided = await decideRecord(
      { ...record, offset, timestamp: 9_000 },
      source,
      new Cache({ fromFirstRecord: false }),
      read,
    )
    for (const { key, draft } of decided.documents) documents.set(key, draft)
  }
  const run = () => createForecaster(stream, read)
  return { apply, run }
}
const outcomeOf = async (forecaster: Forecaster, item: Parked): Promise<string> =>
  (await forecaster.next(item, sent)).outcome
const [active, departed, back] = (['active', 'departed', 'active'] as const).map((status, index) =>
  parked(repRecorded({ org_id, id: 'rep_1', status }), 10 + index),
) as [Parked, Parked, Parked]
/** The same, from a partition that is not theirs. */
const misplaced = ([active, departed, back] as const).map(({ fields, ...rest }): Parked => {
  return { ...rest, fields: { ...fields, partition: 7 } }
}) as [Parked, Parked, Parked]

describe.each([
  ['its own partition', [active, departed, back] as const],
  ['another partition', misplaced],
])('versions of a rep that were parked in %s', (_, [active, departed, back]) => {
  test('follow one that this run has sent', async () => {
    const { apply, run } = storing()
    const forecaster = run()
    expect(await outcomeOf(forecaster, active)).toBe('applied')
    await apply(active, 500)
    forecaster.forget()
    expect(await forecaster.at(active, 500)).toEqual({ outcome: 'applied' })
    expect(await outcomeOf(forecaster, departed)).toBe('applied')
  })

  test('do not replace one that is current, if this run has not sent it: the publisher may have sent the first content again', async () => {
    const { apply, run } = storing()
    await apply(active, 500)
    const forecaster = run()
    const outcomes: string[] = []
    for (const item of [active, departed, back]) outcomes.push((await forecaster.next(item, held)).outcome)
    expect(outcomes).toEqual(['duplicate', 'older', 'duplicate'])
  })

  test('do not replace a newer one that somebody has published', async () => {
    const { apply, run } = storing()
    const newer = parked(repRecorded({ org_id, id: 'rep_1', name: 'newer' }), 499)
    await apply(newer, 499)
    expect(await outcomeOf(run(), departed)).toBe('older')
    await apply(active, 500)
    await apply(newer, 501)
    const forecaster = run()
    for (const item of [active, departed]) expect(await forecaster.next(item, held)).toEqual({ outcome: 'older' })
  })
})
