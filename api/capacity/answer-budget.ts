/**
 * Counts the bytes of answers that this process holds: from the request to Elasticsearch until the client has the
 * answer.
 * In: who reads, and how many bytes. Out: a reservation. Close it when the answer is delivered or its connection is
 *   gone.
 * Promises: the process, each organization and each key stay within their budgets. One exception: a key may exceed its
 *   budget by the large answer that has the turn of its organization (see large-answers.ts). Small answers have a
 *   reserve, so that a few large ones do not refuse everyone else.
 * Can go wrong: too few bytes are left → `unavailable`. Nothing waits, because a waiting client would hold memory, too.
 */
import { unavailable } from '../failures.ts'
import {
  ANSWERS_HELD_MAX,
  ANSWERS_HELD_OF_KEY,
  ANSWERS_HELD_OF_ORGANIZATION,
  MUCH_IS_HELD,
  SMALL_ANSWER_BYTES,
  SMALL_ANSWERS_RESERVE,
} from '../limits.ts'

/** The holder of an API key; undefined for reads of the process itself and answers without a key. */
type Owner = { readonly org: string; readonly id: string } | undefined
export type Limit = 'process' | 'organization' | 'key'

export type Reservation = {
  /** Reserves more bytes. @throws Refusal `unavailable` if too few are left; the reservation is then unchanged */
  readonly add: (bytes: number) => void
  readonly held: () => number
  /** Sets the reservation to this number of bytes. @throws Refusal as `add` does */
  readonly resize: (bytes: number) => void
  /** Gives all bytes back. Later calls count nothing. */
  readonly close: () => void
}

export type AnswerBudget = {
  /**
   * Opens an empty reservation.
   * @param hasTurn whether the request has its organization's turn for a large answer. Its own reads then do not count
   *   against its key: the answer always fits, unless other answers are being delivered.
   */
  readonly open: (owner: Owner, hasTurn?: () => boolean) => Reservation
  readonly held: () => number
}

type BudgetCallbacks = {
  /** Called for every refusal, with the limit that was reached. */
  readonly onRefused: (by: Limit) => void
  /** Called when the held bytes cross MUCH_IS_HELD, up or down: above it the garbage collector must run earlier. */
  readonly onMuchHeld?: (holds: boolean) => void
}

/** Creates the budget of a process. All amounts are bytes. */
export const createAnswerBudget = ({ onRefused, onMuchHeld }: BudgetCallbacks): AnswerBudget => {
  let held = 0
  /** Bytes held by each organization and each key. */
  const heldOf = new Map<string, number>()

  const count = (bytes: number): void => {
    const heldMuch = held > MUCH_IS_HELD
    held += bytes
    if (held > MUCH_IS_HELD !== heldMuch) onMuchHeld?.(!heldMuch)
  }
  const countFor = (name: string, bytes: number): void => {
    const left = (heldOf.get(name) ?? 0) + bytes
    if (left > 0) heldOf.set(name, left)
    else heldOf.delete(name)
  }

  const open: AnswerBudget['open'] = (owner, hasTurn = () => false) => {
    const organization = `organization:${owner?.org}`
    const key = `key:${owner?.org}:${owner?.id}`
    let mine = 0
    let closed = false

    /** Returns the narrowest limit that these bytes would exceed. Only small answers may use the reserve. */
    const limitExceededBy = (bytes: number): Limit | undefined => {
      if (owner !== undefined) {
        const notCounted = hasTurn() ? mine : 0
        if ((heldOf.get(key) ?? 0) - notCounted + bytes > ANSWERS_HELD_OF_KEY) return 'key'
        if ((heldOf.get(organization) ?? 0) + bytes > ANSWERS_HELD_OF_ORGANIZATION) return 'organization'
      }
      const reserve = mine + bytes > SMALL_ANSWER_BYTES ? SMALL_ANSWERS_RESERVE : 0
      return held + bytes > ANSWERS_HELD_MAX - reserve ? 'process' : undefined
    }
    const add: Reservation['add'] = bytes => {
      if (closed || bytes === 0) return
      const limit = bytes > 0 ? limitExceededBy(bytes) : undefined
      if (limit !== undefined) {
        onRefused(limit)
        throw unavailable(`answer_bytes_of_${limit}`)
      }
      mine += bytes
      count(bytes)
      if (owner === undefined) return
      countFor(organization, bytes)
      countFor(key, bytes)
    }
    const resize: Reservation['resize'] = bytes => add(bytes - mine)
    const close = (): void => {
      resize(0)
      closed = true
    }
    return { add, held: () => mine, resize, close }
  }
  return { open, held: () => held }
}
