/**
 * In: a request. Out: the same request with a new id (`X-Request-Id` of its answer), its parsed target, and an abort
 *   signal.
 * Promises: the client never chooses the id. When the client leaves or the time is up, the signal ends the reads.
 */

import { abortReason, type Schedule } from '../../core/runtime/index.ts'
import { READ_TIME_MAX } from '../../core/store/index.ts'
import { type RequestStep, readTarget } from './request.ts'

/** Step: sets id, target and signal of the request. */
export const identifyRequest = (newRequestId: () => string, later: Schedule): RequestStep => {
  return async (ctx, next) => {
    const { path, query } = readTarget(ctx.req.url ?? '')
    const ending = new AbortController()
    ctx.state.requestId = newRequestId()
    ctx.state.path = path
    ctx.state.query = query
    ctx.state.signal = ending.signal
    ctx.set('X-Request-Id', ctx.state.requestId)
    ctx.set('X-Content-Type-Options', 'nosniff')

    const leave = () => ending.abort(abortReason('client_gone'))
    const timeIsUp = (): void => ending.abort(abortReason('time_is_up'))
    let cancel = later(READ_TIME_MAX, timeIsUp)
    ctx.state.renewTime = milliseconds => {
      cancel()
      cancel = later(READ_TIME_MAX + milliseconds, timeIsUp)
    }
    ctx.res.once('close', leave)
    try {
      await next()
    } finally {
      cancel()
      ctx.res.removeListener('close', leave)
    }
  }
}
