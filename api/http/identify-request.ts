/**
 * In: a request. Out: the same request with a new id (`X-Request-Id` of its answer), its parsed target, and an abort
 *   signal.
 * Promises: the client never chooses the id. When the client leaves or the time is up, the signal ends the reads.
 */

import type { IncomingMessage } from 'node:http'
import { abortReason, type Schedule } from '../../core/runtime/index.ts'
import { READ_TIME_MAX } from '../../core/store/index.ts'
import { baseAddressOf } from './base-address.ts'
import { type Arrived, readTarget, type Timed } from './request.ts'
import type { Step } from './steps.ts'

/** Returns what is known of a request from the start. */
export const arrivedOf = (
  request: IncomingMessage,
  { newRequestId, publicUrl }: { readonly newRequestId: () => string; readonly publicUrl?: string | undefined },
): Arrived => ({
  requestId: newRequestId(),
  ...readTarget(request.url ?? ''),
  baseAddress: () => baseAddressOf(request, publicUrl),
  spent: { waited: 0, bytesRead: 0, added: { bytes: 0, isFirst: false }, held: undefined },
})

/** Step: shows the id of the request, and adds its signal. */
export const identifyRequest = (later: Schedule): Step<Arrived, Timed> => {
  return async (ctx, next) => {
    const ending = new AbortController()
    ctx.set('X-Request-Id', ctx.state.requestId)
    ctx.set('X-Content-Type-Options', 'nosniff')

    const leave = () => ending.abort(abortReason('client_gone'))
    const timeIsUp = (): void => ending.abort(abortReason('time_is_up'))
    let cancel = later(READ_TIME_MAX, timeIsUp)
    const renewTime = (milliseconds: number): void => {
      cancel()
      cancel = later(READ_TIME_MAX + milliseconds, timeIsUp)
    }
    ctx.res.once('close', leave)
    try {
      await next({ signal: ending.signal, renewTime })
    } finally {
      cancel()
      ctx.res.removeListener('close', leave)
    }
  }
}
