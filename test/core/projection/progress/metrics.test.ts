import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { createProjectorMetrics, type StreamStatus } from '../../../../core/projection/progress/metrics.ts'
import { createProcessMetrics } from '../../../../core/runtime/process-metrics.ts'

const status: StreamStatus = {
  generation: 'g1',
  topic: 'commission.events',
  partition: 3,
  readTo: 12,
  writtenTo: 11,
  searchableTo: 10,
  committedTo: 9,
  end: 15,
  publishedUntil: 1_700_000_000_500,
}

const linesOf = async (metrics: ReturnType<typeof createProjectorMetrics>): Promise<string[]> =>
  (await metrics.registry.metrics()).split('\n')

test('each partition has its positions, its lag and the instant up to which it is published', async () => {
  const lines = await linesOf(createProjectorMetrics(new Registry(), { partitions: () => [status] }))
  const labels = 'generation="g1",topic="commission.events",partition="3"'
  expect(lines).toContain(`commission_position{${labels},reached="searchableTo"} 10`)
  expect(lines).toContain(`commission_lag_records{${labels}} 5`)
  expect(lines).toContain('commission_published_until_seconds{generation="g1",partition="3"} 1700000000.5')
})

test('positions are offsets only', async () => {
  const lines = await linesOf(createProjectorMetrics(new Registry(), { partitions: () => [status] }))
  const reached = lines.flatMap(line => /^commission_position\{.*reached="(\w+)"/.exec(line)?.[1] ?? [])
  expect(reached).toEqual(['readTo', 'writtenTo', 'searchableTo', 'committedTo', 'end'])
})

test('a partition whose published time is not known has the time 0, and so a high age', async () => {
  const lines = await linesOf(
    createProjectorMetrics(new Registry(), { partitions: () => [{ ...status, publishedUntil: 0 }] }),
  )
  expect(lines).toContain('commission_published_until_seconds{generation="g1",partition="3"} 0')
})

test('API keys have positions, and no published time', async () => {
  const keys = { ...status, generation: 'api-keys', publishedUntil: 0 }
  const lines = await linesOf(createProjectorMetrics(new Registry(), { partitions: () => [status, keys] }))
  const ofKeys = lines.filter(line => line.includes('generation="api-keys"')).map(line => line.split('{')[0])
  expect(ofKeys).toContain('commission_lag_records')
  expect(ofKeys).not.toContain('commission_published_until_seconds')
  expect(lines).toContain('commission_published_until_seconds{generation="g1",partition="3"} 1700000000.5')
})

test('parked records are those that are stored, and no old number stays while they cannot be counted', async () => {
  let counted = true
  const stored = [
    { generation: 'g1', stream: 'events', records: 37 },
    { generation: 'api-keys', stream: 'api-keys', records: 0 },
  ] as const
  const metrics = createProjectorMetrics(new Registry(), { storedParked: async () => (counted ? stored : []) })
  const series = async () => (await linesOf(metrics)).filter(line => line.startsWith('commission_parked_records'))
  expect(await series()).toEqual([
    'commission_parked_records{generation="g1",stream="events"} 37',
    'commission_parked_records{generation="api-keys",stream="api-keys"} 0',
  ])
  counted = false
  expect(await series()).toEqual([])
})

test('counters tell the generations apart', async () => {
  const metrics = createProjectorMetrics(new Registry())
  metrics.of('events', 'g1').countProjected({ applied: 2, duplicate: 0, parked: 1 }, ['data_invalid'])
  metrics.of('events', 'g2').countProjected({ applied: 5, duplicate: 0, parked: 0 }, [])
  metrics.of('events', 'g2').observeAge(0.4)
  const lines = await linesOf(metrics)
  expect(lines).toContain('commission_records_total{generation="g1",stream="events",outcome="applied"} 2')
  expect(lines).toContain('commission_records_total{generation="g2",stream="events",outcome="applied"} 5')
  expect(lines).toContain('commission_parked_total{generation="g1",stream="events",code="data_invalid"} 1')
  expect(lines).toContain('commission_published_age_seconds_bucket{le="0.5",generation="g2"} 1')
})

test('a stream that ended and a partition that was lost leave no series that could be an alert', async () => {
  const metrics = createProjectorMetrics(new Registry())
  const [g1, g2] = [metrics.of('events', 'g1'), metrics.of('events', 'g2')]
  for (const one of [g1, g2]) {
    one.setUnowned('commission.events', 2)
    one.setRecordsBehind('commission.events', 3, 40_000)
  }
  g2.forgetUnowned('commission.events')
  g2.forgetRecordsBehind('commission.events', 3)
  const series = (await linesOf(metrics)).filter(line => /^commission_(?:partitions_without|clock_ahead)/.test(line))
  expect(series).toEqual([
    'commission_clock_ahead_seconds{clock="records",generation="g1",topic="commission.events",partition="3"} -40',
    'commission_partitions_without_owner{generation="g1",topic="commission.events"} 2',
  ])
})

test('the process, its CPU and its memory are there', async () => {
  const lines = await linesOf(createProjectorMetrics(createProcessMetrics('projector')))
  expect(lines).toContainEqual(
    expect.stringMatching(/^commission_build_info\{program="projector",version="\d+\.\d+\.\d+"\} 1$/),
  )
  expect(lines).toContainEqual(expect.stringMatching(/^process_cpu_seconds_total \d/))
})
