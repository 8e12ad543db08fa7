import { describe, expect, test } from 'vitest'
import type { SourceAdmin } from '../../../core/log/kafka/source.ts'
import type { Schedule } from '../../../core/runtime/time-limits.ts'
import type { Answer, Request } from '../../../core/store/elasticsearch/client.ts'
import { countStoredParked, readParkedLately, readStatus, statusOfAll } from '../../../projector/admin/status.ts'
import type { Stream } from '../../../schemas/events.ts'
import { sending } from '../../support/answering.ts'

const identity = { generation: 'g1', topic: 'commission.events', cluster_id: 'x', partitions: 2, rules_version: 1 }
const admin = {
  fetchTopicOffsets: async () => [
    { partition: 1, low: '0', high: '30', offset: '30' },
    { partition: 0, low: '0', high: '12', offset: '12' },
  ],
} as unknown as SourceAdmin

const counted = { status: 200, body: { aggregations: { partitions: { buckets: [{ key: 1, doc_count: 4 }] } } } }
const refreshed = { status: 200, body: { _shards: { total: 1, successful: 1, failed: 0 } } }
const stored = { 'position:g1:0': 12, 'position:g1:1': 25 }

/** Elasticsearch with these answers. `asked` gets each request. */
const answering = (
  { refresh = refreshed, search = counted, positions = stored }: Partial<Answers>,
  asked: Request[] = [],
) =>
  sending(async request => {
    asked.push(request)
    if (request.path.endsWith('/_refresh')) return refresh
    if (request.path.endsWith('/_search')) return search
    const { docs } = request.body as { docs: { _id: string; _index: string }[] }
    const found = docs.map(({ _id, _index }) => {
      expect(_index).toBe('commission-control')
      const position = positions[_id]
      if (position === undefined) return { _id, found: false }
      return { _id, found: true, _version: 1, _source: { kind: 'position', body: { position } } }
    })
    return { status: 200, body: { docs: found } }
  })
type Answers = {
  readonly refresh: Answer
  readonly search: Answer
  readonly positions: Readonly<Record<string, number>>
}

test('the status of every partition, whoever owns it, has its published position, end, lag and parked records', async () => {
  const asked: Request[] = []
  const send = answering({}, asked)
  expect(await readStatus(identity, 'commission-g1-parked', 'commission', admin, { send })).toEqual([
    {
      generation: 'g1',
      topic: 'commission.events',
      partition: 0,
      searchable_to: 12,
      end: 12,
      lag: 0,
      lost: 0,
      parked: 0,
    },
    {
      generation: 'g1',
      topic: 'commission.events',
      partition: 1,
      searchable_to: 25,
      end: 30,
      lag: 5,
      lost: 0,
      parked: 4,
    },
  ])
  expect(asked.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'POST /_mget',
    'POST /commission-g1-parked/_refresh',
    'POST /commission-g1-parked/_search',
  ])
  expect(asked[2]?.query).toEqual({ allow_partial_search_results: false })
})

test('records that a topic has lost since they were published are counted', async () => {
  const positions = { ...stored, 'position:g1:0': 20 }
  const found = await readStatus(identity, 'commission-g1-parked', 'commission', admin, {
    send: answering({ positions }),
  })
  expect(found[0]).toMatchObject({ searchable_to: 20, end: 12, lag: 0, lost: 8 })
})

test('records that were parked lately are counted by their code, and those with a time ahead of the clock apart', async () => {
  const asked: Request[] = []
  const times = { since: 10, now: 50 }
  const bucket = { key: 'rep_unknown', doc_count: 3, first: { value: 20 }, last: { value: 40 } }
  const aggregations = { ahead: { doc_count: 60 }, lately: { codes: { buckets: [bucket] } } }
  const search = { status: 200, body: { aggregations } }
  const lately = await readParkedLately(['g1-parked', 'g2-parked'], times, { send: answering({ search }, asked) })
  expect(lately).toEqual({ codes: [{ code: 'rep_unknown', records: 3, first: 20, last: 40 }], ahead: 60 })
  const [, searched] = asked
  expect(searched?.path).toBe('/g1-parked,g2-parked/_search')
  const extremes = { first: { min: { field: 'at' } }, last: { max: { field: 'at' } } }
  const codes = { terms: { field: 'code', size: expect.any(Number) }, aggs: extremes }
  expect(searched?.body).toEqual({
    size: 0,
    query: { range: { at: { gte: 10 } } },
    aggs: {
      ahead: { filter: { range: { at: { gt: 5_050 } } } },
      lately: { filter: { range: { at: { lte: 5_050 } } }, aggs: { codes } },
    },
  })
  expect(await readParkedLately(['g1-parked'], times, { send: answering({ search: unavailable }) })).toBeUndefined()
})

const unavailable = { status: 503, body: { error: { type: 'search_phase_execution_exception' } } }
test.each<[string, Partial<Answers>]>([
  ['a shard of the parked records was not refreshed', { refresh: { status: 200, body: { _shards: { failed: 1 } } } }],
  ['the parked records could not be refreshed', { refresh: { status: 404, body: {} } }],
  [
    'the parked records were not counted in time',
    { search: { ...counted, body: { ...counted.body, timed_out: true } } },
  ],
  ['a shard of the parked records does not answer', { search: unavailable }],
  ['a position is missing', { positions: { 'position:g1:0': 12 } }],
])('the status is not known if %s: no number is made up', async (_, answers) => {
  const streams = [{ identity, layout: { indexOf: () => 'commission-g1-parked' } }]
  expect(await statusOfAll(streams, 'commission', admin, { send: answering(answers) })).toBeUndefined()
  expect(await statusOfAll(streams, 'commission', admin, { send: answering({}) })).toHaveLength(2)
})

describe('the parked records of each stream that are stored', () => {
  const streamOf = (stream: Stream, generation: string) => ({
    ...{ stream, identity: { ...identity, generation } },
    layout: { indexOf: () => `commission-${generation}-parked` },
  })
  const streams = [streamOf('events', 'g1'), streamOf('api-keys', 'api-keys')]

  test('are those of all partitions, refreshed', async () => {
    const asked: Request[] = []
    const buckets = [
      { key: 1, doc_count: 4 },
      { key: 0, doc_count: 2 },
    ]
    const search = { status: 200, body: { aggregations: { partitions: { buckets } } } }
    expect(await countStoredParked(streams, { send: answering({ search }, asked) })).toEqual([
      { generation: 'g1', stream: 'events', records: 6 },
      { generation: 'api-keys', stream: 'api-keys', records: 6 },
    ])
    const paths = asked.map(({ path }) => path)
    expect(paths).toContain('/commission-g1-parked/_refresh')
    expect(paths).toContain('/commission-api-keys-parked/_refresh')
  })

  test('lack only the stream whose index cannot be counted', async () => {
    const answer = answering({})
    const send = sending(request => (request.path.includes('g1') ? Promise.resolve(unavailable) : answer(request)))
    expect(await countStoredParked(streams, { send })).toEqual([
      { generation: 'api-keys', stream: 'api-keys', records: 4 },
    ])
  })

  test('are not waited for while Elasticsearch is silent', async () => {
    const atOnce: Schedule = (_, run) => {
      queueMicrotask(run)
      return () => undefined
    }
    const send = sending((_, signal) => new Promise((_, reject) => signal?.addEventListener('abort', reject)))
    expect(await countStoredParked(streams, { send }, atOnce)).toEqual([])
  })
})
