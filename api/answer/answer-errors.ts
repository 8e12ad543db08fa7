/**
 * In: every request. Out: whatever the steps behind this one answer; where they fail, the refusal in the one shape.
 * Promises: who is refused for now is told when to come again, in seconds that differ, so that not all come at once.
 *   Every request is answered, logged in one line and counted (of refusals of an address, which may be a flood, see
 *   log-refusals.ts); no message of a library and nothing that was sent is shown.
 * Can go wrong: what is not a refusal is `internal`; the log has the kind of error and where it was thrown, not what it
 * says.
 */

import { isForNow, Refusal, refusalAnswer, retryAfter } from '../failures.ts'
import type { AddressOf } from '../http/client-address.ts'
import type { Log } from '../http/log.ts'
import type { Context, Step } from '../http/request.ts'
import type { AdmitLine } from './log-refusals.ts'

/**
 * Records one request. `route` is the pattern, undefined for an unknown path; `because` is the internal reason of a
 * refusal.
 */
export type ObserveRequest = (
  method: string,
  route: string | undefined,
  status: number,
  milliseconds: number,
  because?: string,
) => void

type Parts = {
  readonly log: Log
  readonly observe: ObserveRequest
  readonly now: () => number
  readonly random: () => number
  readonly addressOf: AddressOf
  readonly admitLine: AdmitLine
}

export const answerErrors = ({ log, observe, now, random, addressOf, admitLine }: Parts): Step => {
  return async (ctx, next) => {
    const begun = now()
    let because: string | undefined
    let isOfAddress = false
    try {
      await next()
    } catch (error) {
      if (!(error instanceof Refusal)) log.failed(ctx.state.requestId, error)
      const refusal = error instanceof Refusal ? error : new Refusal('internal')
      because = refusal.because ?? refusal.code
      isOfAddress = refusal.code === 'unauthorized' || refusal.code === 'rate_limited'
      answerRefusal(ctx, refusal)
      if (isForNow(refusal.code) && !ctx.response.get('Retry-After')) ctx.set('Retry-After', retryAfter(random))
    }
    const milliseconds = now() - begun
    observe(ctx.method, ctx.state.route, ctx.status, milliseconds, because)
    if (!isOfAddress) {
      log.answered(ctx.state, ctx.method, ctx.status, milliseconds, because)
      return
    }
    const address = addressOf(ctx.req)
    const line = admitLine(address)
    if (line) log.answered(ctx.state, ctx.method, ctx.status, milliseconds, because, { address, ...line })
  }
}

const answerRefusal = (ctx: Context, refusal: Refusal): void => {
  const answer = refusalAnswer(refusal)
  // Set where an answer was begun that could not be made.
  for (const name of ['ETag', 'Projection-Time']) ctx.remove(name)
  ctx.status = answer.status
  ctx.set('Content-Type', 'application/json; charset=utf-8')
  for (const [name, value] of Object.entries(answer.headers)) ctx.set(name, value)
  if (answer.closes) ctx.set('Connection', 'close')
  ctx.body = answer.body
}
