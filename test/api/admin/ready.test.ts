/** Readiness and the metrics of positions rest on what requests rest on: one partition takes nothing from another. */
import { expect, test } from 'vitest'
import { createApiMetrics } from '../../../api/admin/metrics.ts'
import { createReadiness } from '../../../api/admin/ready.ts'
import { READY_TIME_MAX } from '../../../core/reading/limits.ts'
import { unavailable } from '../../../core/runtime/refusals.ts'
import { controlIndex } from '../../support/control-index.ts'
import { generationText, positionText } from '../answers.ts'

const liveWith = (generation: string, floor?: readonly number[] | null) =>
  JSON.stringify({ kind: 'live', body: { generation, floor } })

const setUp = (stored: Record<string, string>, checkKeys: () => Promise<unknown> = async () => undefined) => {
  const { documents, reader } = controlIndex({
    'generation:g1': generationText('g1', 2),
    'position:g1:1': positionText(10, 2_000),
    ...stored,
  })
  const readiness = createReadiness(reader.readServedPositions, checkKeys)
  const { registry, watchReadiness } = createApiMetrics()
  watchReadiness(readiness)
  const samples = async () =>
    (await registry.metrics())
      .split('\n')
      .filter(line => /^(?:commission_published_until|commission_partition_not|api_not_ready)/.test(line))
  return { documents, readiness, samples }
}

test('a partition that waits to be read again does not hide the others, and is named', async () => {
  const { documents, readiness, samples } = setUp({ 'position:g1:1': positionText(10, 2_000, 11) })
  const { notReady, positions } = await readiness()
  expect([notReady, [...(positions?.notServed ?? [])]]).toEqual([[], [[1, 'not_read_again_yet']]])
  expect(await samples()).toEqual([
    'commission_published_until_seconds{generation="g1",partition="0"} 1',
    'commission_partition_not_served{generation="g1",partition="1",reason="not_read_again_yet"} 1',
  ])
  documents['position:g1:1'] = positionText(11, 2_000, 11)
  expect(await samples()).toEqual([
    'commission_published_until_seconds{generation="g1",partition="0"} 1',
    'commission_published_until_seconds{generation="g1",partition="1"} 2',
  ])
})

test('a served partition whose time is not known has the time 0, so that its age is an alert', async () => {
  const { samples } = setUp({ 'position:g1:1': positionText(10, 0) })
  expect(await samples()).toEqual([
    'commission_published_until_seconds{generation="g1",partition="0"} 1',
    'commission_published_until_seconds{generation="g1",partition="1"} 0',
  ])
})

test('an API that serves no partition is not ready, for each of their reasons', async () => {
  const { documents, readiness } = setUp({ 'position:g1:0': positionText(10, 1_000, 11) })
  delete documents['position:g1:1']
  expect((await readiness()).notReady).toEqual(['not_read_again_yet', 'no_position'])
})

test('while a swap is unfinished the API is not ready: every request is refused', async () => {
  const { documents, readiness, samples } = setUp({ live: liveWith('g1', null) })
  expect((await readiness()).notReady).toEqual(['position_went_back'])
  expect((await samples()).map(line => line.split('{')[0])).toEqual([
    'api_not_ready',
    ...Array(2).fill('commission_partition_not_served'),
  ])
  documents.live = liveWith('g1', [10, 11])
  expect((await readiness()).notReady).toEqual([])
})

test('the first answer after a swap is about the generation that is live now', async () => {
  const { documents, readiness } = setUp({})
  await readiness()
  documents.live = liveWith('g2')
  documents['generation:g2'] = generationText('g2', 2)
  for (const partition of [0, 1]) documents[`position:g2:${partition}`] = positionText(10, 3_000)
  const { notReady, positions } = await readiness()
  expect([notReady, positions?.generation.name, positions?.partitions.length]).toEqual([[], 'g2', 2])
})

test('while the generation of a swap is some moments behind, the check waits for it as requests do', async () => {
  const { documents, reader } = controlIndex({})
  let reads = 0
  const read: typeof reader.readServedPositions = async signal => {
    // One of g1, one that finds the swap, and three while g2 is behind.
    if (++reads === 6) documents['position:g2:0'] = positionText(10, 1_000)
    return reader.readServedPositions(signal)
  }
  const readiness = createReadiness(read, async () => undefined)
  expect((await readiness()).notReady).toEqual([])
  documents.live = liveWith('g2')
  documents['generation:g2'] = generationText('g2')
  documents['position:g2:0'] = positionText(9, 1_000)
  const { notReady, positions } = await readiness()
  expect([notReady, positions?.generation.name, reads]).toEqual([[], 'g2', 6])
})

test('a position that stays behind is named in time', async () => {
  const { reader } = controlIndex({ live: liveWith('g1', null) })
  const readiness = createReadiness(reader.readServedPositions, async () => undefined)
  const start = performance.now()
  expect((await readiness()).notReady).toEqual(['position_went_back'])
  expect(performance.now() - start).toBeLessThan(READY_TIME_MAX)
})

test('while no key can be looked up, the reason is a metric, although all partitions are served', async () => {
  const { samples } = setUp({}, async () => {
    throw unavailable('keys_not_read_yet')
  })
  expect(await samples()).toEqual([
    'api_not_ready{reason="keys_not_read_yet"} 1',
    'commission_published_until_seconds{generation="g1",partition="0"} 1',
    'commission_published_until_seconds{generation="g1",partition="1"} 2',
  ])
})

test('a process that stops is no alert', async () => {
  const { registry, watchReadiness } = createApiMetrics()
  watchReadiness(async () => ({ notReady: ['stopping'], positions: undefined }))
  expect(await registry.metrics()).not.toContain('api_not_ready{')
})

test('without a live generation the API is not ready', async () => {
  const { documents, readiness } = setUp({})
  delete documents.live
  expect(await readiness()).toEqual({ notReady: ['no_live_generation'], positions: undefined })
})
