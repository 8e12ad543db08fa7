import { expect, test } from 'vitest'
import { readStatus } from '../../../projector/admin/status.ts'
import type { Request } from '../../../projector/elasticsearch/client.ts'
import type { SourceAdmin } from '../../../projector/kafka/source.ts'
import { sending } from '../../support/answering.ts'

const identity = { generation: 'g1', topic: 'commission.events', cluster_id: 'x', partitions: 2, rules_version: 1 }

test('the status of every partition, whoever owns it, has its published position, end, lag and parked records', async () => {
  const asked: Request[] = []
  const admin = {
    fetchTopicOffsets: async () => [
      { partition: 1, low: '0', high: '30', offset: '30' },
      { partition: 0, low: '0', high: '12', offset: '12' },
    ],
  } as unknown as SourceAdmin
  const positions: Record<string, number> = { 'position:g1:0': 12, 'position:g1:1': 25 }
  const send = sending(async request => {
    asked.push(request)
    if (request.path === '/_mget') {
      const { docs } = request.body as { docs: { _id: string; _index: string }[] }
      const found = docs.map(({ _id, _index }) => {
        expect(_index).toBe('commission-control')
        return { _id, found: true, _version: 1, _source: { kind: 'position', body: { position: positions[_id] } } }
      })
      return { status: 200, body: { docs: found } }
    }
    return { status: 200, body: { aggregations: { partitions: { buckets: [{ key: 1, doc_count: 4 }] } } } }
  })
  expect(await readStatus(identity, 'commission-g1-parked', 'commission', admin, { send })).toEqual([
    { generation: 'g1', topic: 'commission.events', partition: 0, searchable_to: 12, end: 12, lag: 0, parked: 0 },
    { generation: 'g1', topic: 'commission.events', partition: 1, searchable_to: 25, end: 30, lag: 5, parked: 4 },
  ])
  expect(asked.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'POST /_mget',
    'POST /commission-g1-parked/_refresh',
    'POST /commission-g1-parked/_search',
  ])
})
