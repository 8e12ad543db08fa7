/**
 * In: a request with its key. Out: the memory of its reads: a reservation of the budget for answers, and its turn among
 *   large answers.
 * Promises: what arrives for a request counts in its reservation, and for its price. A request that waits for a change
 *   closes its memory meanwhile, and opens it again. After the last read, limit-delivery.ts gives it back.
 * Can go wrong: the budget is used up → `unavailable`.
 */

import { createReadMemory, createTurn, largeFrom } from '../../core/reading/index.ts'
import type { Semaphores } from '../../core/runtime/index.ts'
import type { AnswerBudget } from '../../core/store/index.ts'
import type { Arrived, Authenticated, Reserved, Routed, Step, Timed } from '../http/request.ts'

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
  return (ctx, next) => next({ ...open(ctx.state), form: { isFixed: false, sealState: undefined } })
}
