/**
 * In: the answer to a request, after all later steps. Out: the same answer, ready to be sent by Koa, with a reservation
 *   of the budget until the client has it or its connection is gone.
 * Promises: from here on, the reservation equals the bytes that the answer holds, even if it is part of a larger
 *   buffer. All other buffers of the reads are freed, and the answer is freed once it is delivered. Before, the
 *   reservation does not count the copies with opened texts (open-records.ts). An answer without a key is one
 *   buffer that all deliveries share: only an encrypted copy of it counts. Delivery takes a bounded time. An encrypted
 *   connection also holds one piece of the answer.
 * Can go wrong: the budget is used up → `unavailable`. A client reads too slowly → its connection is closed.
 */

import { Readable } from 'node:stream'
import { createReadMemory, createTurn, largeFrom } from '../../core/reading/index.ts'
import type { Schedule, Semaphores } from '../../core/runtime/index.ts'
import { type AnswerBudget, compact, free, heldBy, type Reservation } from '../../core/store/index.ts'
import { onceDelivered } from '../http/once-delivered.ts'
import { holderOf, type RequestContext, type RequestStep } from '../http/request.ts'
import { DELIVERY_RATE_MIN, DELIVERY_TIME_MIN, ENCRYPTED_AT_ONCE } from '../limits.ts'

/** Opens and closes the reservation of a request. */
export type ReadReservation = Readonly<Record<'open' | 'close', (ctx: RequestContext) => void>>

export const createReadReservation = (budget: AnswerBudget, turns: Semaphores): ReadReservation => ({
  open: ({ state }) => {
    const { isCopied = false, signal } = state
    const key = holderOf(state)
    const turn = createTurn(turns, key.org, largeFrom(isCopied), signal)
    const reservation = budget.open(key, turn.isMine)
    state.reservation = reservation
    state.turn = turn
    state.reads = []
    const onRead = (bytes: number): void => {
      state.bytesRead = (state.bytesRead ?? 0) + bytes
    }
    state.memory = createReadMemory({ reservation, turn, org: key.org, reads: state.reads, onRead })
  },
  close: ({ state }) => {
    state.reservation?.close()
    state.turn?.end()
    delete state.memory
    delete state.reservation
    delete state.reads
    delete state.turn
  },
})

/** Step: opens the reservation of an authenticated request, for its reads and its answer. */
export const reserveReads = ({ open }: ReadReservation): RequestStep => {
  return async (ctx, next) => {
    open(ctx)
    await next()
  }
}

/** Step: holds and limits the delivery of an answer. @param onDeliveryTimeout called if it was not delivered in time */
export const limitDelivery = (budget: AnswerBudget, later: Schedule, onDeliveryTimeout: () => void): RequestStep => {
  return async (ctx, next) => {
    try {
      await next()
      const body: unknown = ctx.body
      for (const read of ctx.state.reads ?? []) if (!isPartOf(body, read)) free(read)
      if (Buffer.isBuffer(body)) deliver(ctx, compact(body), ctx.state.reservation)
      else ctx.state.reservation?.close()
    } catch (error) {
      ctx.state.reservation?.close()
      throw error
    } finally {
      // The turn ends last, when the bytes of the reads are given back.
      ctx.state.turn?.end()
    }
  }

  function deliver(ctx: RequestContext, body: Buffer, ofReads: Reservation | undefined): void {
    const { req, res } = ctx
    if (ctx.method === 'HEAD' || res.closed || res.destroyed) {
      ofReads?.close()
      return
    }
    const isEncrypted = 'encrypted' in req.socket && req.socket.encrypted === true
    // All deliveries without a key share one buffer. Only an encrypted copy takes memory.
    const reservation = ofReads ?? (isEncrypted ? budget.open(undefined) : undefined)
    reservation?.deliver(heldBy(body))
    const cancel = later(deliveryTime(body.length), () => {
      onDeliveryTimeout()
      req.socket.destroy()
    })
    onceDelivered(req, res, () => {
      cancel()
      // A response that broke off may still be in use.
      if (res.writableFinished) free(body)
      reservation?.close()
    })
    const isInPieces = isEncrypted && body.length > ENCRYPTED_AT_ONCE
    if (isInPieces) res.setMaxListeners(LISTENERS_MAX)
    ctx.body = isInPieces ? Readable.from(piecesOf(body)) : body
    ctx.length = body.length
  }
}

/** Node adds seven listeners to a response that comes from a stream. Above ten, it would write a warning each time. */
const LISTENERS_MAX = 20

/** Whether a body was written into the buffer of a read. */
const isPartOf = (body: unknown, read: Buffer): boolean => Buffer.isBuffer(body) && body.buffer === read.buffer

/** Returns the milliseconds for delivery, in whole seconds, because Node keeps a list of timers for each duration. */
export const deliveryTime = (bytes: number): number => DELIVERY_TIME_MIN + Math.floor(bytes / DELIVERY_RATE_MIN) * 1_000

/**
 * @throws Error if the body was freed meanwhile: this closes the connection. If the body only ended early, the next
 *   answer of the connection would fill it up.
 */
const piecesOf = function* (body: Buffer): Generator<Buffer> {
  const { length } = body
  for (let from = 0; from < length; from += ENCRYPTED_AT_ONCE) {
    if (body.length !== length) throw new Error('a body was freed before it was delivered')
    yield body.subarray(from, from + ENCRYPTED_AT_ONCE)
  }
}
