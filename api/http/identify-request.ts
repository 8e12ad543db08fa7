/**
 * In: a request. Out: the same with an id of ours, which every answer has as `X-Request-Id`, its target read, and a
 * signal that ends it.
 * Promises: the id is never one the client chose; when the client goes away or the time is up, what was asked of
 * Elasticsearch ends.
 */

import { READ_TIME_MAX } from '../limits.ts'
import { endingBecause, type Later } from '../time-limits.ts'
import { readTarget, type Step } from './request.ts'

export const identifyRequest = (newRequestId: () => string, later: Later): Step => {
  return async (ctx, next) => {
    const { path, query } = readTarget(ctx.req.url ?? '')
    const ending = new AbortController()
    ctx.state.requestId = newRequestId()
    ctx.state.path = path
    ctx.state.query = query
    ctx.state.signal = ending.signal
    ctx.set('X-Request-Id', ctx.state.requestId)
    ctx.set('X-Content-Type-Options', 'nosniff')

    const leave = () => ending.abort(endingBecause('client_gone'))
    const cancel = later(READ_TIME_MAX, () => ending.abort(endingBecause('time_is_up')))
    ctx.res.once('close', leave)
    try {
      await next()
    } finally {
      cancel()
      ctx.res.removeListener('close', leave)
    }
  }
}
