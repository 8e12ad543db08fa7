/** The publisher that measures freshness, and the unused pairs of rep and period that it needs. */
import { expect, test } from 'vitest'
import { createSteadyPublisher, type SentPayout } from '../../../bench/processes/constant-rate.ts'
import { createDataset, type DatasetSize } from '../../../bench/rig/dataset.ts'
import type { AnyEvent, PayoutCalculatedData } from '../../../schemas/events.ts'

const size: DatasetSize = { payouts: 200, organizations: 3, recalculated: 0.1, free: 400, lines: 1, steps: 1 }
const { organizations, payouts } = createDataset(size)

const publisherTo = (publish: (...events: AnyEvent[]) => Promise<void>) =>
  createSteadyPublisher({ topics: { publish }, organizations, shape: size, signal: new AbortController().signal })

test('every payout is for a rep and period without one', async () => {
  const published: AnyEvent[] = []
  const publish = publisherTo(async (...events) => void published.push(...events))
  await publish(1_000, 0.03)
  await publish(1_000, 0.03)
  expect(published.length).toBe(60)
  const pairs = [...payouts(), ...published].flatMap(({ data }) => {
    const { supersedes_id, org_id, rep_id, period_id } = data as PayoutCalculatedData
    return supersedes_id === null ? [`${org_id} ${rep_id} ${period_id}`] : []
  })
  expect(new Set(pairs).size).toBe(pairs.length)
})

test('events due at the same time go in one request, and each is reported', async () => {
  const requests: number[] = []
  const sent: SentPayout[] = []
  const publish = publisherTo(async (...events) => void requests.push(events.length))
  const perSecond = await publish(2_000, 0.02, one => sent.push(one))
  expect(sent.length).toBe(40)
  expect(requests.reduce((sum, events) => sum + events, 0)).toBe(40)
  expect(requests.length).toBeLessThan(10)
  expect(perSecond).toBeLessThan(2_100)
  expect(new Set(sent.map(({ organization }) => organization))).toEqual(new Set([0, 1, 2]))
})

test('a mix has all kinds of events, and reports the payouts, which are nine of ten', async () => {
  const published: AnyEvent[] = []
  const sent: SentPayout[] = []
  const publish = publisherTo(async (...events) => void published.push(...events))
  await publish(100_000, 0.01, one => sent.push(one), 'mix')
  const shareOf = (type: string) => published.filter(event => event.type === type).length / published.length
  expect(shareOf('commission.payout.calculated.v1')).toBeCloseTo(0.9, 1)
  expect(sent.length).toBe(shareOf('commission.payout.calculated.v1') * published.length)
  expect(shareOf('commission.rep.recorded.v1')).toBeCloseTo(0.04, 1)
  expect(shareOf('commission.payroll.recorded.v1')).toBeCloseTo(0.04, 1)
  expect(shareOf('commission.period.recorded.v1')).toBeCloseTo(0.02, 1)
})

test('publishing fails if a request fails', async () => {
  const publish = publisherTo(() => Promise.reject(new Error('no broker')))
  await expect(publish(1_000, 0.01)).rejects.toThrow('no broker')
})
