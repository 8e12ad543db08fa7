/**
 * A request as its client and as operators see it: its answer, its line in the log, and its span. Beside it: messages
 * for operators.
 * In: every request, with `traceparent` if the client sent one. Out: the answer of the following steps; if they fail,
 *   the refusal as JSON. A line; one span, if an OpenTelemetry SDK is loaded with `--import`. Without one, no span.
 * Promises: answers, counts and logs every request. A client that is refused for now gets a random Retry-After, so that
 *   clients do not all return at once. No message of a library is shown, and nothing that was sent, except the name of
 *   a parameter. A line never has a URL, a key, a record id, an amount or a message of a library. A span has the
 *   method, the pattern of the route, the status and the request id. It has no target, header, key, organization or
 *   record: others read the spans. An SDK is large, and each company has its own: none is here. A flood does not fill
 *   the log: requests without a valid key and those over a limit may be one. `createAdmitLine` limits their lines,
 *   which have the address of the client. An answered preflight request has none, which these would lack. Every other
 *   request has one line.
 * Can go wrong: any other error → `internal`. The log gets the class of the error and its location, not its message.
 */
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import {
  errorLocation,
  isRetryable,
  lruOptions,
  NO_CONTENT,
  Refusal,
  refusalAnswer,
  retryAfter,
} from '../../core/runtime/index.ts'
import { REVALIDATED } from '../access/authenticate.ts'
import { type AddressOf, networkOf } from '../http/client-address.ts'
import type { Arrived, Context, KnownSoFar, Step } from '../http/request.ts'
import { ADDRESSES_REMEMBERED, REFUSALS_LOGGED, REFUSALS_LOGGED_IN_ALL, REFUSALS_LOGGED_SECONDS } from '../limits.ts'
import { FIXED } from './answer-page.ts'

const tracer = trace.getTracer('commission-api')

/** First step: a span around all others. */
export const traceRequest: Step<Arrived & KnownSoFar> = (ctx, next) => {
  const parent = propagation.extract(context.active(), ctx.req.headers)
  return tracer.startActiveSpan(ctx.method, { kind: SpanKind.SERVER }, parent, async span => {
    try {
      return await next()
    } finally {
      const { route, requestId } = ctx.state
      if (route !== undefined) span.updateName(`${ctx.method} ${route}`).setAttribute('http.route', route)
      span.setAttributes({
        'http.request.method': ctx.method,
        'http.response.status_code': ctx.status,
        'commission.request_id': requestId,
      })
      if (ctx.status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
      span.end()
    }
  })
}

/**
 * Records one request: `request` in api/admin/metrics.ts counts it in `api_request_seconds`, and with a reason in
 * `api_refusals_total`. `route` is a pattern, undefined for an unknown path; `reason` that of a refusal.
 */
export type ObserveRequest = (
  method: string,
  route: string | undefined,
  status: number,
  milliseconds: number,
  reason?: string,
) => void

type Parts = {
  readonly log: Log
  readonly observe: ObserveRequest
  readonly elapsed: () => number
  readonly random: () => number
  readonly addressOf: AddressOf
  readonly admitLine: AdmitLine
}

/** Second step, within the span: answers errors of all following steps, logs and counts the request. Never rejects. */
export const answerAndLog = ({
  log,
  observe,
  elapsed,
  random,
  addressOf,
  admitLine,
}: Parts): Step<Arrived & KnownSoFar> => {
  return async (ctx, next) => {
    const begun = elapsed()
    let reason: string | undefined
    let isLimited = false
    try {
      await next()
    } catch (error) {
      if (!(error instanceof Refusal)) log.failure(ctx.state.requestId, error)
      const refusal = error instanceof Refusal ? error : new Refusal('internal')
      reason = refusal.reason ?? refusal.code
      isLimited = refusal.code === 'unauthorized' || refusal.code === 'rate_limited'
      answerRefusal(ctx, refusal)
      if (isRetryable(refusal.code) && !ctx.response.get('Retry-After')) ctx.set('Retry-After', retryAfter(random))
    }
    // A request that waits for a change is not slow.
    const milliseconds = elapsed() - begun - ctx.state.spent.waited
    observe(ctx.method, ctx.state.route, ctx.status, milliseconds, reason)
    if (ctx.status === NO_CONTENT) return
    if (ctx.state.key !== undefined && !isLimited) {
      log.answer(ctx.state, ctx.method, ctx.status, milliseconds, reason)
      return
    }
    const address = addressOf(ctx.req)
    const line = admitLine(address)
    if (line) log.answer(ctx.state, ctx.method, ctx.status, milliseconds, reason, { address, ...line })
  }
}

const answerRefusal = (ctx: Context<Arrived>, refusal: Refusal): void => {
  const answer = refusalAnswer(refusal)
  // These headers are set if an answer was begun and then failed.
  for (const name of ['ETag', 'Projection-Time', 'Link']) ctx.remove(name)
  if (ctx.response.get('Cache-Control') === FIXED) ctx.set('Cache-Control', REVALIDATED)
  ctx.status = answer.status
  ctx.set('Content-Type', 'application/json; charset=utf-8')
  for (const [name, value] of Object.entries(answer.headers)) ctx.set(name, value)
  if (answer.closes) ctx.set('Connection', 'close')
  ctx.body = answer.body
}

export type Log = {
  readonly answer: (
    state: Arrived & KnownSoFar,
    method: string,
    status: number,
    milliseconds: number,
    reason?: string,
    from?: LimitedAddress,
  ) => void
  /** Logs a bug: the class of the error and its location. */
  readonly failure: (requestId: string, error: unknown) => void
  /** Logs an error without a listener: its class and location. */
  readonly unhandledError: (level: 'error' | 'fatal', error: unknown) => void
  /** Logs the refusal of bytes that never became a request. */
  readonly refusedBytes: (requestId: string, reason: string, from: LimitedAddress) => void
  readonly say: (level: 'info' | 'warn' | 'error', message: string, details?: Details) => void
}

type Details = Record<string, string | number | readonly string[]>

/** The address of a request whose lines are limited, and how many of its requests got no line since its last line. */
type LimitedAddress = { readonly address: string | undefined; readonly unlogged: number }

/** Creates the log of the API on a logger. Times are in milliseconds. */
export const createLog = (pino: Logger): Log => ({
  answer: (state, method, status, milliseconds, reason, from) =>
    pino.info(
      {
        request_id: state.requestId,
        method,
        route: state.route,
        status,
        ms: Math.round(milliseconds * 100) / 100,
        key_id: state.key?.id,
        organization_hash: state.key?.orgHash,
        because: reason,
        address: from?.address,
        unlogged: from?.unlogged || undefined,
      },
      'answered',
    ),
  failure: (requestId, error) =>
    pino.error(
      {
        request_id: requestId,
        ...errorLocation(error),
      },
      'a request failed',
    ),
  unhandledError: (level, error) => pino[level](errorLocation(error), 'an error that nobody listened for'),
  refusedBytes: (requestId, reason, { address, unlogged }) =>
    pino.info({ request_id: requestId, because: reason, address, unlogged: unlogged || undefined }, 'refused bytes'),
  say: (level, message, details) => pino[level](details ?? {}, message),
})

/**
 * Decides which requests of a possible flood get a line. In: the address of a request without a valid key, or over a
 * limit. Out: how many of these requests of this address got no line since its last line; undefined if this one gets
 * none.
 */
export type AdmitLine = (address: string | undefined) => { readonly unlogged: number } | undefined
type Window = { readonly ends: number; lines: number }

/**
 * In a window, one address gets REFUSALS_LOGGED lines, and all addresses get REFUSALS_LOGGED_IN_ALL. The metrics count
 * every request.
 * @param elapsed milliseconds of a monotonic clock
 */
export const createAdmitLine = (elapsed: () => number): AdmitLine => {
  const windows = new LRUCache<string, Window & { unlogged: number }>(lruOptions(ADDRESSES_REMEMBERED))
  const newWindow = (): Window => ({ ends: elapsed() + REFUSALS_LOGGED_SECONDS * 1_000, lines: 0 })
  let all = newWindow()

  return address => {
    const network = networkOf(address)
    if (elapsed() >= all.ends) all = newWindow()
    const before = windows.get(network)
    const window = before && elapsed() < before.ends ? before : { ...newWindow(), unlogged: before?.unlogged ?? 0 }
    windows.set(network, window)
    if (window.lines >= REFUSALS_LOGGED || all.lines >= REFUSALS_LOGGED_IN_ALL) {
      window.unlogged++
      return undefined
    }
    window.lines++
    all.lines++
    const { unlogged } = window
    window.unlogged = 0
    return { unlogged }
  }
}
