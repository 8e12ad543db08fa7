/** The forecast for parked records, one after the other: only records that are sent count for later ones. */
import { expect, test } from 'vitest'
import { partitionOf } from '../../../schemas/partition.ts'
import { layoutOf } from '../../../schemas/stored/layout.ts'
import type { Parked } from '../../../tools/parked/find.ts'
import { createForecaster, type Forecast } from '../../../tools/parked/forecast.ts'
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
