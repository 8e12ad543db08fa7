import { context, propagation, SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { createAdmitLine, traceRequest } from '../../../api/answer/answer-and-log.ts'
import {
  ADDRESSES_REMEMBERED,
  REFUSALS_LOGGED,
  REFUSALS_LOGGED_IN_ALL,
  REFUSALS_LOGGED_SECONDS,
} from '../../../api/limits.ts'
import { createSpanRecorder } from '../../support/spans.ts'

test('a flood from one address logs a few lines per window; the next window starts with the number of dropped lines', () => {
  let time = 0
  const admit = createAdmitLine(() => time)
  const flood = Array.from({ length: 1_000 }, () => admit('192.0.2.1'))
  expect(flood.filter(line => line !== undefined)).toEqual(Array(REFUSALS_LOGGED).fill({ unlogged: 0 }))
  expect(admit('192.0.2.2')).toEqual({ unlogged: 0 })
  time = REFUSALS_LOGGED_SECONDS * 1_000
  expect([admit('192.0.2.1'), admit('192.0.2.1')]).toEqual([{ unlogged: 1_000 - REFUSALS_LOGGED }, { unlogged: 0 }])
})

test('a flood from very many addresses logs a bounded number of lines', () => {
  const admit = createAdmitLine(() => 0)
  const addresses = Array.from(
    { length: 2 * ADDRESSES_REMEMBERED },
    (_, n) => `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`,
  )
  const lines = addresses.filter(address => admit(address) !== undefined)
  expect(lines.length).toBe(REFUSALS_LOGGED_IN_ALL)
})

const spans = createSpanRecorder()
const PARENT = { trace: '4bf92f3577b34da6a3ce929d0e0e4736', span: '00f067aa0ba902b7' }

const requested = (state: object, headers: Record<string, string> = {}) =>
  ({ method: 'GET', status: 200, req: { headers }, state: { requestId: 'request_1', ...state } }) as Parameters<
    typeof traceRequest
  >[0]
const traced = async (ctx: Parameters<typeof traceRequest>[0], next = async (): Promise<void> => undefined) => {
  await traceRequest(ctx, next)
  const [span] = spans.finished()
  return span
}

test('without an SDK, a request has no span', async () => {
  expect(await traced(requested({}))).toBeUndefined()
})

describe('with an SDK', () => {
  beforeEach(spans.start)
  afterAll(spans.stop)

  test('a request has one span with its method, route, status and id, and nothing else', async () => {
    const state = {
      route: '/api/v1/payouts/:id',
      path: '/api/v1/payouts/payout_1',
      key: { id: 'key_1', orgId: 'org_1' },
    }
    const span = await traced(requested(state, { authorization: 'Bearer secret' }))
    expect(span).toMatchObject({ name: 'GET /api/v1/payouts/:id', kind: SpanKind.SERVER })
    expect(span?.attributes).toEqual({
      'http.route': '/api/v1/payouts/:id',
      'http.request.method': 'GET',
      'http.response.status_code': 200,
      'commission.request_id': 'request_1',
    })
  })

  test('the span of an unknown path has the method as its name', async () => {
    expect(await traced(requested({ path: '/secret' }))).toMatchObject({ name: 'GET' })
  })

  test('the span continues the trace of the client, and is active during the request', async () => {
    const headers = { traceparent: `00-${PARENT.trace}-${PARENT.span}-01` }
    const given: Record<string, string> = {}
    const span = await traced(requested({}, headers), async () => propagation.inject(context.active(), given))
    expect(span?.spanContext().traceId).toBe(PARENT.trace)
    expect(span?.parentSpanContext?.spanId).toBe(PARENT.span)
    expect(given.traceparent).toBe(`00-${PARENT.trace}-${span?.spanContext().spanId}-01`)
  })

  test.each(['', 'x', `00-${PARENT.trace}-${PARENT.span}`, `ff-${'0'.repeat(32)}-${'0'.repeat(16)}-00`])(
    'an invalid traceparent begins a trace of its own: %j',
    async traceparent => {
      const span = await traced(requested({}, { traceparent }))
      expect(span?.parentSpanContext).toBeUndefined()
    },
  )

  test('a failure of the service is an error of the span; an error passes through and ends it', async () => {
    expect(await traced({ ...requested({}), status: 503 } as Parameters<typeof traceRequest>[0])).toMatchObject({
      status: { code: SpanStatusCode.ERROR },
    })
    spans.start()
    const failed = traced(requested({}), () => Promise.reject(new Error('x')))
    await expect(failed).rejects.toThrow('x')
    expect(spans.finished()).toHaveLength(1)
  })
})
