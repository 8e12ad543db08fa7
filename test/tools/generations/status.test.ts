/** The status of a generation, over stored control documents: which partitions the API serves. */
import type { Kafka } from 'kafkajs'
import { expect, test } from 'vitest'
import { indexOf, kinds } from '../../../schemas/stored/documents.ts'
import { status } from '../../../tools/generations/status.ts'
import { sending } from '../../support/answering.ts'

const positionOf = (position: number, serve_from: number) => ({ position, last: null, at: 1, time: 0, serve_from })
const indices = Object.fromEntries(['p-control', ...kinds.map(kind => indexOf('p', 'g1', kind))].map(id => [id, 'i']))
const bodies: Readonly<Record<string, object>> = {
  live: { generation: 'g1', kept: ['g1'] },
  'generation:g1': { topic: 't', cluster_id: 'c', partitions: 5, rules_version: 1, generation: 'g1', indices },
  'position:g1:0': positionOf(20, 50),
  'position:g1:1': positionOf(50, 50),
  'position:g1:2': positionOf(30, 40),
  'position:g1:3': { ...positionOf(10, 0), removing: true },
  'position:g1:4': positionOf(1_000, 0),
}
const found = (_id: string) => {
  const body = bodies[_id]
  return { _id, found: body !== undefined, _version: 1, _source: { kind: _id.split(':')[0], body } }
}
const send = sending(async ({ path, body }) => {
  const [, first, operation, id = ''] = path.split('/').map(decodeURIComponent)
  if (first === '_mget') {
    return { status: 200, body: { docs: (body as { docs: { _id: string }[] }).docs.map(({ _id }) => found(_id)) } }
  }
  if (operation === '_settings') {
    const settings = { settings: { index: { uuid: 'i' } } }
    return { status: 200, body: Object.fromEntries(Object.keys(indices).map(name => [name, settings])) }
  }
  // Elasticsearch has no security.
  if (first === '_security') return { status: 400, body: {} }
  const whole = { timed_out: false, _shards: { failed: 0 } }
  if (operation === '_search') return { status: 200, body: { ...whole, aggregations: { codes: { buckets: [] } } } }
  return { status: 200, body: operation === '_doc' ? found(id) : whole }
})
const adminOf = (end: number) => ({
  ...{ connect: async () => undefined, disconnect: async () => undefined },
  describeCluster: async () => ({ clusterId: 'c' }),
  fetchTopicMetadata: async () => ({ topics: [{ partitions: [{}, {}, {}, {}, {}] }] }),
  fetchTopicOffsets: async () =>
    [...[50, 50, 30, 10], end].map((end, partition) => ({ partition, offset: `${end}`, high: `${end}`, low: '0' })),
})

/** @param end of the last partition */
const statusOf = async (json: boolean, end = 1_000) => {
  const out: string[] = []
  const context = {
    ...{
      send,
      prefix: 'p',
      topics: { events: 't', 'api-keys': 'k' },
      kafka: { admin: () => adminOf(end) } as unknown as Kafka,
    },
    ...{ sleep: async () => undefined, now: () => 1_000, elapsed: () => 0, say: () => undefined },
    out: (text: string | Buffer) => void out.push(String(text)),
  }
  const code = await status({ generation: undefined, org: undefined, json }, context)
  return { code, text: out.join('') }
}

test('a partition that is read again is shown with the offset from which the API serves it', async () => {
  const lines = (await statusOf(false)).text.split('\n')
  expect(lines).toContain('partition 0: 20 of 50, 30 behind; included up to nothing; answers 503 until offset 50')
  expect(lines).toContain('partition 1: 50 of 50, 0 behind; included up to nothing')
  expect(lines).toContain(
    'partition 2: 30 of 30, 0 behind; included up to nothing; answers 503 until offset 40: its topic ends at 30',
  )
  expect(lines).toContain(
    'partition 3: 10 of 10, 0 behind; included up to nothing; answers 503 until adopt or rewind, which removes documents, has ended: run it again',
  )
  expect(JSON.parse((await statusOf(true)).text).partitions).toMatchObject([
    { position: 20, end: 50, serve_from: 50 },
    { position: 50, end: 50, serve_from: 50 },
    { position: 30, end: 30, serve_from: 40 },
    { position: 10, end: 10, serve_from: 0, removing: true },
    { position: 1_000, end: 1_000, lost: 0 },
  ])
})

test('a topic that has lost records which were projected is named, with exit code 1', async () => {
  expect(await statusOf(false)).toMatchObject({ code: 0 })
  const { code, text } = await statusOf(false, 800)
  expect([code, text.split('\n')]).toEqual([
    1,
    expect.arrayContaining([
      'partition 4: 1000 of 800, 0 behind; included up to nothing; its topic ends 200 records before this position: docs/operating.md, records_deleted, says what to do',
    ]),
  ])
  const json = await statusOf(true, 800)
  expect([json.code, JSON.parse(json.text).partitions[4]]).toMatchObject([1, { lag: 0, lost: 200 }])
})
