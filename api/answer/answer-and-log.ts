/**
 * In: every request. Out: the answer of the following steps; if they fail, the refusal as JSON.
 * Promises: answers, counts and logs every request. The log has one line for each, but `createRefusalLog` limits the
 *   lines of an address about requests that may be a flood: those without a valid key, and those over a limit. An
 *   answered preflight request has none, which these would lack. A client that is refused for now gets a random
 *   Retry-After, so that clients do not all return at once. No message of a library is shown, and nothing that was
 *   sent, except the name of a parameter.
 * Can go wrong: any other error → `internal`. The log gets the class of the error and its location, not its message.
 */
import { isRetryable, NO_CONTENT, Refusal, refusalAnswer, retryAfter } from '../../core/runtime/index.ts'
import { REVALIDATED } from '../access/authenticate.ts'
import type { AddressOf } from '../http/client-address.ts'
import type { AdmitLine, Log } from '../http/log.ts'
import type { Arrived, Context, KnownSoFar, Step } from '../http/request.ts'
import { FIXED } from './answer-page.ts'

/** Records one request. `route` is a pattern, undefined for an unknown path; `reason` that of a refusal. */
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
