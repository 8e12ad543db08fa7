/**
 * In: a request for changes with `wait`. Out: the same request as soon as there may be a change behind its cursor; or,
 *   when its time is up or the process stops, with the position before which there is no change.
 * Promises: a waiting request holds no read permit and no answer bytes, only its connection and its permits in flight.
 *   It counts once. It ends with its connection; also when its client sends more behind it, because then the end of the
 *   connection is not seen. A key that was revoked or expired meanwhile gets no page, also no empty one.
 */

import { type ChangeWatch, readListParameters } from '../../core/reading/index.ts'
import { onceFurtherBytes } from '../http/further-bytes.ts'
import { type RequestStep, scopeOf } from '../http/request.ts'
import { SOCKET_SILENCE_MAX } from '../limits.ts'
import type { ReadReservation } from './limit-delivery.ts'

/** Milliseconds. */
const SHORT_WAIT = 1_000

/** Step: waits. @param path the pattern of the route that can wait; @param elapsed milliseconds of a monotonic clock */
export const waitForChange = (
  path: string,
  { wait }: ChangeWatch,
  reservation: ReadReservation,
  elapsed: () => number,
): RequestStep => {
  return async (ctx, next) => {
    const { state } = ctx
    const asked = state.route === path ? readListParameters('changes', state.query) : undefined
    if (asked?.wait) {
      const milliseconds = asked.wait * 1_000
      let begun: number | undefined
      const onWait = (end: () => void): void => {
        begun = elapsed()
        reservation.close(ctx)
        state.renewTime(milliseconds)
        // No byte passes while the request waits.
        ctx.req.socket.setTimeout(SOCKET_SILENCE_MAX + milliseconds)
        onceFurtherBytes(ctx.res, end)
      }
      reservation.open(ctx)
      try {
        const nothingBefore = await wait(scopeOf(state), asked, milliseconds, onWait)
        if (nothingBefore) state.nothingBefore = nothingBefore
      } finally {
        reservation.close(ctx)
        if (begun !== undefined) {
          state.waited = elapsed() - begun
          state.renewTime(0)
          ctx.req.socket.setTimeout(SOCKET_SILENCE_MAX)
        }
      }
      if (state.waited !== undefined) await state.recheckKey?.()
    }
    // A request that did not wait costs a unit, whatever its answer: a client that asks in a loop must have a limit.
    if (asked?.wait && (state.waited ?? 0) < SHORT_WAIT) delete state.refundUnit
    await next()
  }
}
