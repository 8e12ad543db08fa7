import { expect, test } from 'vitest'
import { installationFor, type MeasuredFigures, scaleTable } from '../../../bench/report/scale-model.ts'

const figures: MeasuredFigures = {
  replayRate: 10_000,
  partitionRate: 5_000,
  projectorTime: 0.1,
  elasticsearchTime: 0.1,
  replicaShare: 1,
  apiTime: 1,
  pageTime: 3,
  pageP50: 20,
  pageP99: 60,
}

test('ten times the payouts take ten times the disk, cores and days, and never less than three nodes', () => {
  const [small, one, ten] = [10e6, 1e9, 10e9].map(payouts => installationFor(payouts, 1, figures))
  expect(small).toMatchObject({ nodes: 3, partitions: 6, shards: 1, projectorCores: 1, rebuildSeconds: 1_000 })
  expect(one).toMatchObject({ shards: 23, elasticsearchBytes: 4.55e12, kafkaBytes: 9.3e12 })
  expect(ten).toMatchObject({ shards: 230, elasticsearchBytes: 45.5e12, rebuildSeconds: 1e6, nodes: 12 })
  expect(ten?.projectorCores).toBe(7)
})

test('a second generation takes as many cores, shards and bytes again for what is written, and none for what is read', () => {
  const [one, two] = [1, 2].map(generations => installationFor(10e9, generations, { ...figures, pageTime: 70 }))
  expect(one).toMatchObject({ projectorCores: 7, elasticsearchCores: 24, shardsInAll: 1_384, nodes: 12 })
  expect(two).toMatchObject({ projectorCores: 14, elasticsearchCores: 37, shardsInAll: 2_768, nodes: 23 })
  expect(two?.elasticsearchBytes).toBe(2 * (one?.elasticsearchBytes ?? 0))
  expect([two?.partitions, two?.kafkaBytes, two?.apiCores]).toEqual([one?.partitions, one?.kafkaBytes, one?.apiCores])
})

test('the fullest partition, with twice the share of the others, decides all that comes to it', () => {
  const partitions = (partitionRate: number) => installationFor(10e9, 1, { ...figures, partitionRate }).partitions
  expect([50_000, 5_600, 1_000].map(partitions)).toEqual([14, 17, 93])
})

test('a replica takes as many more cores of Elasticsearch as was measured', () => {
  const cores = (replicaShare: number) => installationFor(10e9, 1, { ...figures, replicaShare }).elasticsearchCores
  expect([0, 0.5, 1, 2].map(cores)).toEqual([8, 11, 14, 21])
})

test('a slow shard slows the pages of its organizations only: of many shards, no page of a hundred', () => {
  const p99 = (payouts: number) => installationFor(payouts, 1, figures).pageP99
  expect(p99(10e6)).toBe(600)
  expect(p99(1e9)).toBeGreaterThan(200)
  expect(p99(1e9)).toBeLessThan(600)
  expect(p99(10e9)).toBe(60)
})

test('the table has a column for each size, and a row for each question', () => {
  const [titles = '', line, ...rows] = scaleTable(figures).trimEnd().split('\n')
  expect(titles).toBe('| | 10 million | 1 billion | 10 billion in one | 10 billion in 20 groups, each |')
  expect(line).toBe('| --- | --- | --- | --- | --- |')
  expect(rows).toContain('| events/s at the busiest | 46 | 4,600 | 46,000 | 2,300 |')
  expect(rows).toContain('| a rebuild by one process, at least | 17 minutes | 28 hours | 12 days | 14 hours |')
  expect(rows).toContain('| projector cores: kept; while rebuilt | 1; 1 | 1; 2 | 7; 14 | 1; 1 |')
  for (const row of rows) expect(row.split('|')).toHaveLength(7)
})
