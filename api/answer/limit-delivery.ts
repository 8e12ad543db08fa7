/**
 * The memory of a request: opened before its reads (`reserveReads`), held until its answer is delivered
 * (`limitDelivery`). A request that waits for a change closes its memory meanwhile, and opens it again.
 * In: an authenticated request; later its answer, after all later steps. Out: the same answer, ready to be sent by Koa,
 *   with a reservation of the budget until the client has it or its connection is gone.
 * Promises: once the answer is made, the reservation equals the bytes that the answer holds, even if it is part of a
 *   larger buffer. All other buffers of the reads are freed, and the answer is freed once it is delivered. Before, the
 *   reservation does not count the copies with opened texts (open-records.ts). An answer without a key is one buffer
 *   that all deliveries share: only an encrypted copy of it counts. Delivery takes a bounded time. An encrypted
 *   connection also holds one piece of the answer.
 * Can go wrong: the budget is used up → `unavailable`. A client reads too slowly → its connection is closed.
 *
 * A request holds six things. Each is given back in one place:
 * - the bytes that a read expects: when this read ends (`readOnce` in scope.ts). Those that arrived take their place;
 * - its permit to read: when its route has made the answer (`shareReads`);
 * - the buffers of its reads: when the answer is made (`limitDelivery`), unless the answer is a part of them;
 * - its turn for a large answer: after that (`limitDelivery`), before Koa sends the answer;
 * - its reservation: when the answer is delivered or its connection is gone (`onceDelivered`). A refused request, and
 *   an answer without a body, give it back at once (`limitDelivery`);
 * - its permits in flight: when the answer is delivered or its connection is gone (`limitInFlight`).
 * While it waits for a change it has only its permits in flight: `ReadReservation.close` ends turn and reservation.
 */
import { Readable } from 'node:stream'
import type { Schedule, Semaphores } from '../../core/runtime/index.ts'
import {
  type AnswerBudget,
  compact,
  createReadMemory,
  createTurn,
  free,
  heldBy,
  largeFrom,
  type Reservation,
} from '../../core/store/index.ts'
import type { Arrived, Authenticated, Context, Reserved, Routed, Step, Timed } from '../http/request.ts'
import { onceDelivered } from '../http/server.ts'
import { DELIVERY_RATE_MIN, DELIVERY_TIME_MIN, ENCRYPTED_AT_ONCE } from '../limits.ts'

/** Step: holds and limits the delivery of an answer. @param onDeliveryTimeout called if it was not delivered in time */
export const limitDelivery = (budget: AnswerBudget, later: Schedule, onDeliveryTimeout: () => void): Step<Arrived> => {
  return async (ctx, next) => {
    const { spent } = ctx.state
    try {
      await next()
      const body: unknown = ctx.body
      for (const read of spent.held?.reads ?? []) if (!isPartOf(body, read)) free(read)
      if (Buffer.isBuffer(body)) deliver(ctx, compact(body), spent.held?.reservation)
      else spent.held?.reservation.close()
    } catch (error) {
      spent.held?.reservation.close()
      throw error
    } finally {
      // The turn ends last, when the bytes of the reads are given back.
      spent.held?.turn.end()
    }
  }

  function deliver(ctx: Context<Arrived>, body: Buffer, ofReads: Reservation | undefined): void {
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

/** Whether a body shares memory with a read: then the read must stay. */
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

type Needs = Arrived & Timed & Routed & Authenticated
type Opened = Pick<Reserved, 'scope' | 'reservation'>

/** The memory of a request: opened before it reads. */
export type ReadReservation = {
  readonly open: (request: Needs) => Opened
  readonly close: (request: Arrived) => void
}

export const createReadReservation = (budget: AnswerBudget, turns: Semaphores): ReadReservation => ({
  open: ({ key, signal, isCopied, spent }) => {
    const turn = createTurn(turns, key.org, largeFrom(isCopied), signal)
    const reservation = budget.open(key, turn.isMine)
    const reads: Buffer[] = []
    const onRead = (bytes: number): void => {
      spent.bytesRead += bytes
    }
    spent.held = { reservation, turn, reads }
    const memory = createReadMemory({ reservation, turn, org: key.org, reads, onRead })
    return { reservation, scope: { org: key.org, signal, memory } }
  },
  close: ({ spent }) => {
    spent.held?.reservation.close()
    spent.held?.turn.end()
    spent.held = undefined
  },
})

/** Step: opens the memory of an authenticated request, for its reads and its answer. */
export const reserveReads = ({ open }: ReadReservation): Step<Needs, Reserved> => {
  return (ctx, next) => next({ ...open(ctx.state), form: { isFixed: () => false, sealState: undefined } })
}
