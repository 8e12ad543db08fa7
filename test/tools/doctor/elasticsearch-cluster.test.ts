import { describe, expect, test } from 'vitest'
import {
  type ClusterSteps,
  checkClock,
  checkDisk,
  checkHealth,
  checkNodes,
  checkVersion,
} from '../../../tools/doctor/elasticsearch-cluster.ts'

const GiB = 1024 ** 3
const watermark = 'cluster.routing.allocation.disk.watermark'
const defaults = {
  [`${watermark}.low`]: '85%',
  [`${watermark}.high`]: '90%',
  [`${watermark}.flood_stage`]: '95%',
}
const node = (freeGiB: number, totalGiB = 100, timestamp = 1_000) => ({
  name: 'n',
  roles: ['data', 'master'],
  timestamp,
  fs: { total: { total_in_bytes: totalGiB * GiB, available_in_bytes: freeGiB * GiB } },
})
const outcomes = (...given: Parameters<typeof checkDisk>) => checkDisk(...given).map(({ outcome }) => outcome)

describe('a disk', () => {
  test.for([
    [16, 'ok'],
    [14, 'warning'],
    [6, 'warning'],
    [4, 'failed'],
  ] as const)('with %i GiB of 100 free is %s', ([free, outcome]) => {
    expect(outcomes(node(free), defaults)).toEqual([outcome])
  })

  test('of many TiB has room as long as its headroom is free', () => {
    const headroom = { [`${watermark}.low.max_headroom`]: '200gb' }
    expect(outcomes(node(300, 10_000), { [`${watermark}.low`]: '85%', ...headroom })).toEqual(['ok'])
    expect(outcomes(node(199, 10_000), { [`${watermark}.low`]: '85%', ...headroom })).toEqual(['warning'])
  })

  test('has a watermark in bytes, or as a ratio', () => {
    expect(outcomes(node(9), { [`${watermark}.flood_stage`]: '10gb' })).toEqual(['failed'])
    expect(outcomes(node(4), { [`${watermark}.flood_stage`]: '0.95' })).toEqual(['failed'])
    expect(outcomes(node(6), { [`${watermark}.flood_stage`]: '0.95' })).toEqual(['ok'])
  })
})

test.for([
  [10_000, 9_990, 10_010, 'ok'],
  [16_000, 9_990, 10_010, 'warning'],
  [4_000, 9_990, 10_010, 'warning'],
  // The answer took so long that the clocks may agree.
  [16_000, 9_000, 19_000, 'ok'],
] as const)('a clock that says %i between %i and %i is %s', ([timestamp, begun, ended, outcome]) => {
  expect(checkClock(node(1, 1, timestamp), begun, ended).outcome).toBe(outcome)
})

/** Elasticsearch, with these answers by path. */
const answering = (answers: Readonly<Record<string, unknown>>): ClusterSteps => ({
  send: (async ({ path }: { readonly path: string }) => ({ status: 200, body: answers[path] })) as ClusterSteps['send'],
  signal: new AbortController().signal,
  now: () => 1_000,
})

test.for([
  ['9.1.0', 'ok'],
  ['10.0.0', 'warning'],
  ['8.19.0', 'failed'],
] as const)('version %s is %s', async ([number, outcome]) => {
  expect(await checkVersion(answering({ '/': { version: { number } } }))).toMatchObject([{ outcome }])
})

test.for([
  ['green', 3, 'ok'],
  ['green', 1, 'warning'],
  ['yellow', 3, 'warning'],
  ['red', 3, 'failed'],
] as const)('a %s cluster of %i nodes is %s', async ([status, number_of_data_nodes, outcome]) => {
  const health = { status, number_of_data_nodes, unassigned_shards: 0 }
  expect(await checkHealth(answering({ '/_cluster/health': health }))).toMatchObject([{ outcome }])
})

test.for([
  ['all', 3, 'ok'],
  ['metadata_write', 3, 'warning'],
  ['metadata_write', 1, 'ok'],
] as const)('cluster.no_master_block %s with %i nodes that may be master is %s', async ([value, masters, outcome]) => {
  const nodes = Object.fromEntries(Array.from({ length: masters }, (_, at) => [at, node(50)]))
  const settings = { defaults: { ...defaults, 'cluster.no_master_block': 'write' }, persistent: {}, transient: {} }
  const set = { ...settings, persistent: { 'cluster.no_master_block': value } }
  const found = await checkNodes(answering({ '/_nodes/stats/fs': { nodes }, '/_cluster/settings': set }))
  expect(found[0]).toMatchObject({ check: 'Elasticsearch: cluster.no_master_block', outcome })
  // A clock and a disk of each node.
  expect(found.slice(1).map(one => one.outcome)).toEqual(Array.from({ length: 2 * masters }, () => 'ok'))
})

test.for([
  ['xpack.security.audit.logfile.events.emit_request_body', 'true', ['false']],
  ['logger.org.elasticsearch.http.HttpBodyTracer', 'TRACE', ['INFO', 'debug', 'null']],
  ['logger.org.elasticsearch.http', 'TRACE', ['DEBUG']],
  ['logger.org', 'ALL', ['INFO']],
  ['logger._root', 'TRACE', ['INFO']],
] as const)('%s of %s is a warning: pay would be in the logs of Elasticsearch', async ([setting, value, fine]) => {
  const found = async (got: string) => {
    const settings = { defaults: {}, persistent: {}, transient: { [setting]: got } }
    const all = await checkNodes(answering({ '/_nodes/stats/fs': { nodes: {} }, '/_cluster/settings': settings }))
    return all.filter(({ check }) => check === `Elasticsearch: ${setting}`)
  }
  expect(await found(value)).toMatchObject([
    { outcome: 'warning', detail: expect.stringContaining('bodies of requests') },
  ])
  for (const one of fine) expect(await found(one)).toEqual([])
})

test('the level of the logger itself wins over that of a logger above it, and the nearest of these decides', async () => {
  const told = async (persistent: object) => {
    const settings = { defaults: { 'logger.level': 'TRACE' }, persistent, transient: {} }
    const all = await checkNodes(answering({ '/_nodes/stats/fs': { nodes: {} }, '/_cluster/settings': settings }))
    return all.map(({ check }) => check).filter(check => check.includes('logger'))
  }
  const above = { 'logger._root': 'INFO', 'logger.org.elasticsearch.http': 'TRACE' }
  expect(await told(above)).toEqual(['Elasticsearch: logger.org.elasticsearch.http'])
  expect(await told({ ...above, 'logger.org.elasticsearch.http.HttpBodyTracer': 'INFO' })).toEqual([])
  expect(await told({})).toEqual(['Elasticsearch: logger.level'])
})
