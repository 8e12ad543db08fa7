/** How a rebuild knows that it has caught up. */
import kafkajs from 'kafkajs'
import { expect, test } from 'vitest'
import { Unavailable } from '../../projector/elasticsearch/client.ts'
import { StopError } from '../../projector/failures.ts'
import type { SourceAdmin } from '../../projector/kafka/source.ts'
import { CAUGHT_UP_MS, REBUILD_POLL_MS } from '../../projector/limits.ts'
import { type RebuildProgress, waitForCatchUp } from '../../projector/rebuild.ts'
import { Clock } from './clock.ts'

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
})
const end = [{ partition: 0, end: 2 }]
const away = new kafkajs.KafkaJSConnectionError('away')
const inKafka = [{ partition: 0, low: '0', high: '2' }]

test.each<[string, Partial<Steps>]>([
  ['Kafka does not tell the ends', { from: fromKafka(inOrder<unknown>(away, inKafka)) }],
  ['Elasticsearch does not tell the positions to reach', { ends: inOrder<typeof end>(new Unavailable(503), end) }],
  [
    'Elasticsearch does not tell the positions',
    { ends: inOrder(end), positions: inOrder<number[]>([1], new Unavailable(0), [2]) },
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
