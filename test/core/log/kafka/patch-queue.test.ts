import { createRequire } from 'node:module'
import { expect, test, vi } from 'vitest'
import { checkOnlyPendingRequests } from '../../../../core/log/kafka/patch-queue.ts'

type Queue = {
  push(request: object): void
  fulfillRequest(response: object): void
  maybeThrottle(milliseconds: number): void
  destroy(): void
}
const RequestQueue = createRequire(import.meta.url)('kafkajs/src/network/requestQueue') as new (
  options: object,
) => Queue
const silent = { namespace: () => silent, debug: () => undefined, error: () => undefined }

/** A queue with one request in flight at most, and the requests that it sent. */
const setUp = () => {
  checkOnlyPendingRequests()
  vi.useFakeTimers({ now: 1_000_000 })
  const queue = new RequestQueue({
    maxInFlightRequests: 1,
    requestTimeout: 30_000,
    enforceRequestTimeout: false,
    clientId: 'test',
    broker: '127.0.0.1:1',
    logger: silent,
    isConnected: () => true,
  })
  const sent: number[] = []
  const push = (correlationId: number): void =>
    queue.push({
      entry: { correlationId, resolve: () => undefined, reject: () => undefined, apiName: 'test' },
      expectResponse: true,
      sendRequest: () => sent.push(correlationId),
    })
  const answer = (correlationId: number): void =>
    queue.fulfillRequest({ correlationId, payload: Buffer.alloc(0), size: 0 })
  return { queue, sent, push, answer }
}

test('a connection at rest has no timer', t => {
  t.onTestFinished(() => void vi.useRealTimers())
  const { push, answer } = setUp()
  push(1)
  answer(1)
  expect(vi.getTimerCount()).toBe(0)
})

test('a request that waits for the one in flight is sent when that is answered', t => {
  t.onTestFinished(() => void vi.useRealTimers())
  const { push, answer, sent } = setUp()
  push(1)
  push(2)
  expect(sent).toEqual([1])
  answer(1)
  expect(sent).toEqual([1, 2])
})

test('a request that waits because the broker throttles is sent when the time is over', t => {
  t.onTestFinished(() => void vi.useRealTimers())
  const { queue, push, sent } = setUp()
  queue.maybeThrottle(500)
  push(1)
  vi.advanceTimersByTime(499)
  expect(sent).toEqual([])
  vi.advanceTimersByTime(2)
  expect(sent).toEqual([1])
  queue.destroy()
  expect(vi.getTimerCount()).toBe(0)
})
