import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createBenchElasticsearch } from '../../../bench/rig/elasticsearch.ts'

const elasticsearchOf = async (indices: object) => {
  const server = createServer((_, response) => response.end(JSON.stringify({ indices }))).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return createBenchElasticsearch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
}
const primaries = { indexing: { index_total: 1 }, refresh: { total: 2 }, get: { total: 3, missing_total: 4 } }
const counted = { primaries }

test('requests are counted by index', async () => {
  const indices = { 'bench-1-control': counted, 'bench-1-g1-payouts': counted, 'bench-1-g1-chains': counted }
  const { counts } = await elasticsearchOf(indices)
  expect(await counts('bench-1')).toEqual({ controlWrites: 1, refreshes: 2, chainsRead: 3, chainsMissing: 4 })
})

test('an index that is missing is an error, not an index without requests', async () => {
  const { counts } = await elasticsearchOf({ 'bench-1-control': counted, 'bench-1-g1-chains': counted })
  await expect(counts('bench-1')).rejects.toThrow('Elasticsearch has no index bench-1-g1-payouts')
})
