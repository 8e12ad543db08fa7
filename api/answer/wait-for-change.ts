/**
 * In: a request for changes with `wait`. Out: the same request as soon as there may be a change behind its cursor; or,
 *   when its time is up or the process stops, with the position before which there is no change.
 * Promises: a waiting request holds no read permit and no answer bytes, only its connection and its permits in flight.
 *   It counts once. It ends with its connection; also when its client sends more behind it, because then the end of the
 *   connection is not seen. A key that was revoked or expired meanwhile gets no page, also no empty one.
 */

import { type ChangeWatch, type ListParameters, readListParameters } from '../../core/reading/index.ts'
import type { ReadPosition } from '../../core/store/index.ts'
import type { RequestMemory } from '../access/permits.ts'
import type { Arrived, Authenticated, Context, Counted, Routed, Step, Timed, Waited } from '../http/request.ts'
import { onceFurtherBytes } from '../http/server.ts'
import { SOCKET_SILENCE_MAX } from '../limits.ts'

/** Milliseconds. */
const SHORT_WAIT = 1_000

type Needs = Arrived & Timed & Routed & Authenticated & Counted

/** Step: waits. @param path the pattern of the route that can wait; @param elapsed milliseconds of a monotonic clock */
export const waitForChange = (
  path: string,
  { wait }: ChangeWatch,
  memory: RequestMemory,
  elapsed: () => number,
): Step<Needs, Waited> => {
  /** Waits as long as there is no change and the client waits for one. */
  const waitOnce = async (ctx: Context<Needs>, asked: ListParameters, seconds: number): Promise<Waited> => {
    const { state } = ctx
    const milliseconds = seconds * 1_000
    const begun = elapsed()
    let turn: number | undefined
    let waitsSince: number | undefined
    const leaving = new AbortController()
    onceFurtherBytes(ctx.res, () => leaving.abort())
    const events = {
      leaving: leaving.signal,
      onTurn: () => {
        turn = elapsed()
      },
      onWait: () => {
        waitsSince = elapsed()
        memory.close(state)
      },
    }
    // The wait includes the time in which its first search queues behind those of others. It holds no bytes then.
    state.renewTime(milliseconds)
    // No byte passes while the request waits.
    ctx.req.socket.setTimeout(SOCKET_SILENCE_MAX + milliseconds)
    const { scope } = memory.open(state)
    let nothingBefore: ReadPosition | undefined
    try {
      nothingBefore = await wait(scope, asked, milliseconds, events)
    } finally {
      memory.close(state)
      // All but the first search. A queue of less than a millisecond is no wait.
      state.spent.waited = Math.trunc((turn ?? elapsed()) - begun)
      if (turn !== undefined && waitsSince !== undefined) state.spent.waited += elapsed() - waitsSince
      state.renewTime(0)
      ctx.req.socket.setTimeout(SOCKET_SILENCE_MAX)
    }
    // Also if it only queued.
    await state.recheckKey()
    // A request that did not wait costs a unit, whatever its answer: a client that asks in a loop must have a limit.
    const isShort = state.spent.waited < SHORT_WAIT
    return { nothingBefore, refundUnit: isShort ? () => undefined : state.refundUnit }
  }

  return async (ctx, next) => {
    const { route, query, refundUnit } = ctx.state
    const asked = route === path ? readListParameters('changes', query) : undefined
    await next(asked?.wait ? await waitOnce(ctx, asked, asked.wait) : { nothingBefore: undefined, refundUnit })
  }
}
