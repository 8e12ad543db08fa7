/**
 * In: reads of Elasticsearch. Out: the same reads, counted against the reservation of their request.
 * Promises: the expected bytes are reserved before the read, and further bytes as they arrive. Those of a multi-get
 *   that serves several requests are reserved afterwards: they are few. Then exactly the bytes that arrived are held.
 *   The expectation comes from the last read of the organization. A request that is about to hold much waits for its
 *   turn first.
 * Can go wrong: the budget is used up → `unavailable`. More bytes arrive than expected while another request has the
 *   turn → the API drops the answer, and reads it again in the request's own turn.
 */
import { LRUCache } from 'lru-cache'
import { unavailable } from '../../runtime/index.ts'
import {
  type batchMultiGets,
  type CountBytes,
  free,
  isFreeable,
  type MultiGet,
  RECORD_BYTES_EXPECTED,
  type Reservation,
  type Search,
  type TooMuch,
  UNKNOWN_ANSWER_BYTES,
} from '../../store/index.ts'
import { ORGANIZATIONS_REMEMBERED } from '../limits.ts'
import type { Turn } from './large-answers.ts'

/** `reads`: the answers that can be freed once the answer to the client is made. */
type Holding = {
  readonly reservation: Reservation
  readonly turn: Turn
  readonly org: string
  readonly reads: Buffer[]
  /** Called with the bytes of each read, also of one that failed or is read again. */
  readonly onRead: (bytes: number) => void
}

type Reads = { readonly search: Search; readonly multiGets: ReturnType<typeof batchMultiGets> }
type HeldReads = { readonly search: Search; readonly multiGet: MultiGet }

/** Holdings by request: the abort signal of a request identifies it. */
export type Holdings = {
  readonly of: (signal: AbortSignal) => Holding | undefined
  readonly set: (signal: AbortSignal, holding: Holding) => void
  readonly delete: (signal: AbortSignal) => void
}

/** Creates an empty register of holdings. The garbage collector frees an entry with its signal. */
export const createHoldings = (): Holdings => {
  const holdings = new WeakMap<AbortSignal, Holding>()
  return {
    of: signal => holdings.get(signal),
    set: (signal, holding) => void holdings.set(signal, holding),
    delete: signal => void holdings.delete(signal),
  }
}

/** Returns the same reads, counted for requests that have a holding. */
export const holdReads = ({ search, multiGets }: Reads, holdings: Holdings): HeldReads => {
  const lastRead = new LRUCache<string, number>({ max: ORGANIZATIONS_REMEMBERED })

  const heldSearch: Search = async (index, body, signal, expected = UNKNOWN_ANSWER_BYTES) => {
    const holding = holdings.of(signal)
    if (holding === undefined) return search(index, body, signal, expected)
    return hold(holding, expected, arrived => search(index, body, signal, expected, arrived))
  }
  const heldMultiGet: MultiGet = async (names, signal) => {
    const holding = holdings.of(signal)
    if (holding === undefined || names.every(({ form }) => form === 'small')) return multiGets.ofProcess(names, signal)
    const { org } = holding
    const before = lastRead.get(org) ?? RECORD_BYTES_EXPECTED
    const answer = await hold(holding, before, (arrived, expected) =>
      multiGets.ofRequest(names, signal, { expected, arrived }),
    )
    // One small record says little about the next one: the expectation decreases slowly.
    lastRead.set(org, Math.max(answer.length, RECORD_BYTES_EXPECTED, before / 2))
    return answer
  }
  return { search: heldSearch, multiGet: heldMultiGet }
}

/**
 * Asks Elasticsearch. Calls `arrived` with the bytes of each chunk of the answer. Returns a number instead of an answer
 * that needs more bytes than expected.
 */
type Ask<Answer> = (arrived: CountBytes, expected: number) => Promise<Answer | number>

const hold = async <Answer extends Buffer | TooMuch>(
  holding: Holding,
  expected: number,
  ask: Ask<Answer>,
): Promise<Answer> => {
  for (let bytes = expected; ; ) {
    await holding.turn.wait(holding.reservation.held() + bytes)
    const answer = await readOnce(holding, bytes, ask)
    if (typeof answer !== 'number') return answer
    bytes = answer
  }
}

/** Returns the answer; only the number of its bytes if the request must be able to hold them before it asks again. */
const readOnce = async <Answer extends Buffer | TooMuch>(
  { reservation, turn, reads, onRead }: Holding,
  expected: number,
  ask: Ask<Answer>,
): Promise<Answer | number> => {
  reservation.add(expected)
  let reserved = expected
  let arrived = 0
  let needsTurn = false
  const count: CountBytes = bytes => {
    arrived += bytes
    if (arrived <= reserved) return
    needsTurn = !turn.tryNow(reservation.held() - reserved + arrived)
    if (needsTurn) throw unavailable('large_answers')
    reservation.add(arrived - reserved)
    reserved = arrived
  }
  let answer: Answer | number
  try {
    answer = await ask(count, expected)
    if (Buffer.isBuffer(answer)) arrived = answer.length
  } catch (error) {
    if (needsTurn) return arrived
    throw error
  } finally {
    onRead(arrived)
    reservation.add(-reserved)
  }
  if (!Buffer.isBuffer(answer)) return answer
  if (!turn.tryNow(reservation.held() + answer.length)) {
    free(answer)
    return answer.length
  }
  reservation.add(answer.length)
  if (isFreeable(answer)) reads.push(answer)
  return answer
}
