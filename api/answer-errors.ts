/**
 * In: every request. Out: whatever the steps behind this one answer; where they fail, the refusal in the one shape.
 * Promises: every request is answered, logged in one line and counted; no message of a library and nothing that was sent is shown.
 * Can go wrong: what is not a refusal is `internal`; the log has the kind of error and where it was thrown, not what it says.
 */
import { Refusal, refusalAnswer } from './failures.ts'
import type { Log } from './log.ts'
import type { Context, Step } from './request.ts'

/** What is observed about a request: its route pattern, or undefined for a path that is none. */
export type ObserveRequest = (method: string, route: string | undefined, status: number, milliseconds: number) => void

export const answerErrors = (log: Log, observe: ObserveRequest, now: () => number): Step => {
  return async (ctx, next) => {
    const begun = now()
    let because: string | undefined
    try {
      await next()
    } catch (error) {
      if (!(error instanceof Refusal)) log.failed(ctx.state.requestId, error)
      const refusal = error instanceof Refusal ? error : new Refusal('internal')
      because = refusal.because ?? refusal.code
      answerRefusal(ctx, refusal)
    }
    const milliseconds = now() - begun
    observe(ctx.method, ctx.state.route, ctx.status, milliseconds)
    log.answered(ctx.state, ctx.method, ctx.status, milliseconds, because)
  }
}

const answerRefusal = (ctx: Context, refusal: Refusal): void => {
  const answer = refusalAnswer(refusal)
  ctx.status = answer.status
  ctx.set('Content-Type', 'application/json; charset=utf-8')
  for (const [name, value] of Object.entries(answer.headers)) ctx.set(name, value)
  if (answer.closes) ctx.set('Connection', 'close')
  ctx.body = answer.body
}
