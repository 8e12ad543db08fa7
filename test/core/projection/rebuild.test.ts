/** How a rebuild knows that it has caught up, and keeps to its rate. */
import kafkajs from 'kafkajs'
import { expect, test } from 'vitest'
import { RULES_VERSION } from '../../../core/ledger/rules/rules.ts'
import type { SourceAdmin } from '../../../core/log/kafka/source.ts'
import { CAUGHT_UP_MS, REBUILD_POLL_MS } from '../../../core/projection/limits.ts'
import { type RebuildProgress, rebuildGeneration, waitForCatchUp } from '../../../core/projection/rebuild.ts'
import { streamOptions } from '../../../core/projection/stream/stream.ts'
import { StopError } from '../../../core/runtime/failures.ts'
import { Unanswered } from '../../../core/runtime/keep-trying.ts'
import { commonIndices, generationIndices } from '../../../schemas/stored/mappings.ts'
import { Clock } from '../../projector/clock.ts'
import { eventRecord } from '../../projector/records.ts'
import { rep } from '../../projector/story.ts'
import { sending } from '../../support/answering.ts'

type Steps = Parameters<typeof waitForCatchUp>[2]

/** Each read gives the next result, and the last one again and again. An error is thrown. */
const inOrder = <Result>(...results: readonly (Result | Error)[]): (() => Promise<Result>) => {
  const left = [...results]
  return async () => {
    const result = left.length > 1 ? left.shift() : left[0]
    if (result === undefined || result instanceof Error) throw result
    return result
  }
}

const setUp = (given: Partial<Steps>) => {
  const clock = new Clock()
  const stop = new AbortController()
  const progress: RebuildProgress[] = []
  const steps: Steps = {
    from: { reader: { topic: 't', read: async () => ({ entries: [], end: 0 }) }, archivedEnds: [] },
    positions: async () => [2],
    onProgress: one => progress.push(one),
    elapsed: clock.now,
    retryOptions: { sleep: clock.sleep, random: () => 0 },
    signal: stop.signal,
    ...given,
  }
  /** Starts to wait. `result` is undefined until the wait ends. */
  const start = () => {
    const waiting: { result: unknown } = { result: undefined }
    waitForCatchUp('t', undefined, steps).then(
      result => (waiting.result = result),
      error => (waiting.result = error),
    )
    return waiting
  }
  return { clock, stop, progress, start }
}
const fromKafka = (fetchTopicOffsets: () => Promise<unknown>): Steps['from'] => ({
  admin: { fetchTopicOffsets } as unknown as SourceAdmin,
  kafkaWithConnectHook: () => new kafkajs.Kafka({ brokers: [] }),
  openLog: () => Promise.reject(new Error('not used')),
})
const end = [{ partition: 0, end: 2 }]
const away = new kafkajs.KafkaJSConnectionError('away')
const inKafka = [{ partition: 0, low: '0', high: '2' }]

test.each<[string, Partial<Steps>]>([
  ['Kafka does not tell the ends', { from: fromKafka(inOrder<unknown>(away, inKafka)) }],
  [
    'Elasticsearch does not tell the positions to reach',
    { ends: inOrder<typeof end>(new Unanswered('elasticsearch', 503), end) },
  ],
  [
    'Elasticsearch does not tell the positions',
    { ends: inOrder(end), positions: inOrder<number[]>([1], new Unanswered('elasticsearch', 0), [2]) },
  ],
])('a rebuild waits while %s, and does not end', async (_, given) => {
  const { clock, progress, start } = setUp(given)
  const waiting = start()
  for (let poll = 0; poll < 3; poll++) await clock.move(REBUILD_POLL_MS)
  expect(waiting.result).toBe(true)
  expect(progress.at(-1)).toEqual({ done: 2, total: 2 })
})

test('a rebuild that waits for Kafka ends at the signal', async () => {
  const { clock, stop, start } = setUp({ from: fromKafka(inOrder<unknown>(away)) })
  const waiting = start()
  await clock.move(REBUILD_POLL_MS)
  expect(waiting.result).toBeUndefined()
  stop.abort()
  await clock.move(0)
  expect(waiting.result).toBe(false)
})

test('a rebuild ends if records of the topic were deleted', async () => {
  const { clock, start } = setUp({ from: fromKafka(inOrder([{ partition: 0, low: '1', high: '2' }])) })
  const waiting = start()
  await clock.move(0)
  expect(waiting.result).toEqual(expect.any(StopError))
  expect(waiting.result).toMatchObject({ code: 'records_deleted' })
})

test('a rebuild that took long to reach the ends reads them again: records were published meanwhile', async () => {
  const more = [{ partition: 0, end: 3 }]
  const { clock, progress, start } = setUp({ ends: inOrder(end, more), positions: inOrder([1], [2], [2], [3]) })
  const waiting = start()
  await clock.move(CAUGHT_UP_MS)
  expect([waiting.result, progress.at(-1)]).toEqual([undefined, { done: 2, total: 3 }])
  await clock.move(REBUILD_POLL_MS)
  expect([waiting.result, progress.at(-1)]).toEqual([true, { done: 3, total: 3 }])
})

/** Elasticsearch with a new generation of one partition, whose published position moves. It takes every document. */
const newGeneration = () => {
  const published = { position: 0 }
  const version = { _seq_no: 1, _primary_term: 1 }
  const position = { last: null, at: 0, time: 0, serve_from: 0 }
  const indices = { ...commonIndices('c'), ...generationIndices('c', { generation: 'g1' }, { shards: 1 }) }
  const send = sending(async ({ method, path, body, bulk }) => {
    const id = decodeURIComponent(path)
    const { mappings, settings } = indices[path.slice(1)] ?? {}
    if (mappings) return { status: 200, body: { [path.slice(1)]: { mappings, settings: { index: settings } } } }
    if (path.endsWith('/_settings')) {
      return { status: 200, body: { 'c-control': { settings: { index: { uuid: 'first' } } } } }
    }
    if (path.endsWith('/_refresh')) return { status: 200, body: { _shards: { total: 1, successful: 1, failed: 0 } } }
    if (path === '/_bulk') {
      const lines = String(bulk).trimEnd().split('\n')
      const items = lines.flatMap((line, at): object[] => {
        if (at % 2 === 1) return []
        const { index, update } = JSON.parse(line)
        const { _index, _id } = index ?? update
        const _source = { body: { ...position, ...published } }
        if (update) return [{ update: { _index, _id, status: 200, result: 'noop', _version: 1, get: { _source } } }]
        return [{ index: { _index, _id, status: 201 } }]
      })
      return { status: 200, body: { items } }
    }
    const found = { found: true, ...version, _source: { body: { ...position, ...published } } }
    if (path.includes('/_create/')) return { status: 201, body: { _version: 1 } }
    if (!id.includes('position:')) return { status: 404, body: { found: false } }
    if (method === 'PUT') published.position = (body as { body: typeof published }).body.position
    return { status: 200, body: { ...found, _source: { body: { ...position, ...published } } } }
  })
  return { send, published }
}

test('a rebuild that waits long for its rate is not taken for a stuck one', async () => {
  const clock = new Clock()
  const entries = Array.from({ length: 100 }, (_, at) => ({
    ...eventRecord(rep({ id: `rep_${at}` }), at),
    kind: 'record' as const,
  }))
  const { send, published } = newGeneration()
  const bounds = [entries.length]
  const sandbox = { org: null, until: null, bounds, rules: null }
  const source = { topic: 't', cluster_id: 'cluster', partitions: 1, rules_version: RULES_VERSION, sandbox }
  const recorded = { indices: {}, shards: {} }
  const options = { ...streamOptions({ generation: 'g1', ...source, ...recorded }, 'group', 'c'), bounds }
  const read = async (_: number, from: number) => ({ entries: entries.slice(from), end: entries.length })
  const ended: { how: unknown } = { how: undefined }
  const rate = 1
  rebuildGeneration(options, rate, {
    from: { reader: { topic: 't', read }, archivedEnds: [{ partition: 0, low: 0, end: entries.length }] },
    elasticsearch: { send },
    retryOptions: { sleep: clock.sleep, random: () => 0 },
    now: clock.now,
    elapsed: clock.now,
    say: () => undefined,
    onProgress: () => undefined,
    positions: async () => [published.position],
    signal: new AbortController().signal,
  }).then(
    how => (ended.how = how),
    error => (ended.how = error),
  )
  for (let second = 1; second < entries.length / rate; second++) await clock.move(1_000)
  expect([ended.how, published.position]).toEqual([undefined, 0])
  for (let second = 0; second < 20; second++) await clock.move(1_000)
  expect([ended.how, published.position]).toEqual(['caught up', entries.length])
})
