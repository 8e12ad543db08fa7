import { createRequire } from 'node:module'
import { expect, test, vi } from 'vitest'
import { kafkaConfig } from '../../../../core/log/kafka-config.ts'
import { kafkaSettings, readSettings } from '../../../../core/runtime/settings.ts'

const load = createRequire(import.meta.url)
const silent = { namespace: () => silent, debug: () => undefined, error: () => undefined }

type Group = { memberId: string; coordinator: object; heartbeat(asked: { interval: number }): Promise<void> }
const ConsumerGroup = load('kafkajs/src/consumer/consumerGroup') as new (options: object) => Group
type Queue = { push(request: object): void; maybeThrottle(milliseconds: number): void; destroy(): void } & {
  scheduleRequestTimeoutCheck(): void
}
const RequestQueue = load('kafkajs/src/network/requestQueue') as new (options: object) => Queue

const HOUR = 3_600_000
const settings = readSettings(kafkaSettings, { KAFKA_BROKERS: 'a:1' })

const clockAt = (now: number) => {
  // As every process makes its options: the second call changes nothing.
  for (let call = 0; call < 2; call++)
    kafkaConfig(
      settings,
      'test',
      () => Buffer.alloc(0),
      () => Date.now(),
    )
  vi.useFakeTimers({
    now,
    toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'],
  })
}

test.for([-HOUR, HOUR])('a clock that is set by %i ms changes no time between two heartbeats', async (step, t) => {
  t.onTestFinished(() => void vi.useRealTimers())
  clockAt(10 * HOUR)
  const heartbeat = vi.fn(async () => undefined)
  const group = new ConsumerGroup({ logger: silent, topics: [], topicConfigurations: {}, assigners: [], cluster: {} })
  Object.assign(group, {
    memberId: 'me',
    coordinator: { heartbeat },
    instrumentationEmitter: { emit: () => undefined },
  })
  const after = async (milliseconds: number) => {
    vi.advanceTimersByTime(milliseconds)
    await group.heartbeat({ interval: 3_000 })
    return heartbeat.mock.calls.length
  }
  expect([await after(2_999), await after(1)]).toEqual([0, 1])
  vi.setSystemTime(Date.now() + step)
  expect([await after(2_999), await after(1)]).toEqual([1, 2])
})

test.for([-HOUR, HOUR])('a clock that is set by %i ms changes no time limit of a request, and no delay', (step, t) => {
  t.onTestFinished(() => void vi.useRealTimers())
  clockAt(10 * HOUR)
  const queue = new RequestQueue({
    ...{ maxInFlightRequests: null, requestTimeout: 1_000, enforceRequestTimeout: true },
    ...{ clientId: 'test', broker: '127.0.0.1:1', logger: silent, isConnected: () => true },
  })
  const [sent, failed]: [number[], number[]] = [[], []]
  const push = (correlationId: number): void =>
    queue.push({
      entry: { correlationId, resolve: () => undefined, reject: () => failed.push(correlationId), apiName: 'test' },
      expectResponse: true,
      sendRequest: () => sent.push(correlationId),
    })
  queue.scheduleRequestTimeoutCheck()
  push(1)
  queue.maybeThrottle(500)
  push(2)
  vi.setSystemTime(Date.now() + step)
  vi.advanceTimersByTime(400)
  expect([sent, failed]).toEqual([[1], []])
  vi.advanceTimersByTime(300)
  expect([sent, failed]).toEqual([[1, 2], []])
  vi.advanceTimersByTime(500)
  expect(failed).toEqual([1])
  queue.destroy()
})
