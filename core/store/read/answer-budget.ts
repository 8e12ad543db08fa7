/**
 * Counts the bytes of answers that this process holds: from the request to Elasticsearch until the client has the
 * answer.
 * In: who reads, and how many bytes. Out: a reservation. Close it when the answer is delivered or its connection is
 *   gone.
 * Promises: the process, each organization and each key stay within their budgets. One exception: a key may exceed its
 *   budget by the large answer that has the turn of its organization (see scope.ts). Small answers have a
 *   reserve, so that a few large ones do not refuse everyone else. Answers in delivery have narrower budgets: clients
 *   that read slowly hold them for minutes, and other organizations need room for large answers meanwhile.
 * Can go wrong: too few bytes are left → `unavailable`. Nothing waits, because a waiting client would hold memory, too.
 *
 * The functions below say what a buffer holds, and give it back: a small part of a large buffer keeps all of it.
 * `collect` fills a buffer with an answer as it arrives.
 */
import type { Readable } from 'node:stream'
import { PAGE_BYTES_MAX } from '../../../schemas/limits.ts'
import { unavailable } from '../../runtime/index.ts'
import {
  ANSWER_BYTES_MAX,
  ANSWERS_HELD_MAX,
  ANSWERS_HELD_OF_KEY,
  ANSWERS_HELD_OF_ORGANIZATION,
  ANSWERS_IN_DELIVERY_OF_KEY,
  ANSWERS_IN_DELIVERY_OF_ORGANIZATION,
  MUCH_IS_HELD,
  SLICE,
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
  /**
   * Sets the reservation to the bytes of the complete answer. They count as in delivery until `close`.
   * @throws Refusal as `add` does
   */
  readonly deliver: (bytes: number) => void
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
  /** Bytes of each organization and each key: all that they hold, and those in delivery. */
  const heldOf = new Map<string, number>()
  const inDeliveryOf = new Map<string, number>()

  const count = (bytes: number): void => {
    const heldMuch = held > MUCH_IS_HELD
    held += bytes
    if (held > MUCH_IS_HELD !== heldMuch) onMuchHeld?.(!heldMuch)
  }

  const open: AnswerBudget['open'] = (owner, hasTurn = () => false) => {
    const organization = `organization:${owner?.org}`
    const key = `key:${owner?.org}:${owner?.id}`
    let mine = 0
    let inDelivery = 0
    let closed = false

    const countFor = (bytesOf: Map<string, number>, bytes: number): void => {
      if (owner === undefined) return
      for (const name of [organization, key]) {
        const left = (bytesOf.get(name) ?? 0) + bytes
        if (left > 0) bytesOf.set(name, left)
        else bytesOf.delete(name)
      }
    }
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
    /**
     * Returns the narrowest limit that the delivery of an answer of this size would exceed. Reads can be larger than
     * the answer, so an answer counts as one page at most.
     */
    const deliveryLimitExceededBy = (answer: number): Limit | undefined => {
      if (owner === undefined) return undefined
      const bytes = Math.min(answer, PAGE_BYTES_MAX)
      if ((inDeliveryOf.get(key) ?? 0) + bytes > ANSWERS_IN_DELIVERY_OF_KEY) return 'key'
      const all = (inDeliveryOf.get(organization) ?? 0) + bytes
      return all > ANSWERS_IN_DELIVERY_OF_ORGANIZATION ? 'organization' : undefined
    }
    const refuse = (limit: Limit): never => {
      onRefused(limit)
      throw unavailable(`answer_bytes_of_${limit}`)
    }
    const change = (bytes: number): void => {
      mine += bytes
      count(bytes)
      countFor(heldOf, bytes)
    }
    const add: Reservation['add'] = bytes => {
      if (closed || bytes === 0) return
      // Without room for its delivery, an answer is refused before it is read.
      const limit = bytes > 0 ? (limitExceededBy(bytes) ?? deliveryLimitExceededBy(mine + bytes)) : undefined
      if (limit !== undefined) refuse(limit)
      change(bytes)
    }
    const deliver: Reservation['deliver'] = bytes => {
      if (closed) return
      // Answers that were read at the same time may have taken the room.
      const limit = deliveryLimitExceededBy(bytes)
      if (limit !== undefined) refuse(limit)
      add(bytes - mine)
      countFor(inDeliveryOf, bytes - inDelivery)
      inDelivery = bytes
    }
    const close = (): void => {
      if (closed) return
      closed = true
      change(-mine)
      countFor(inDeliveryOf, -inDelivery)
    }
    return { add, held: () => mine, deliver, close }
  }
  return { open, held: () => held }
}

/** Returns the bytes that this buffer keeps in memory. Small buffers share a pool of Node. */
export const heldBy = ({ buffer, length }: Buffer): number =>
  buffer.byteLength <= Buffer.poolSize ? length : buffer.byteLength

/** Returns a buffer of this length, with any content. A long one can be freed. */
export const allocate = (length: number): Buffer =>
  length > SLICE.bytes ? Buffer.from(new ArrayBuffer(length, { maxByteLength: length })) : Buffer.allocUnsafe(length)

/** Whether `free` gives memory back: only for a buffer that grew in place, and for a long one of `allocate`. */
export const isFreeable = ({ buffer }: Buffer): boolean => buffer instanceof ArrayBuffer && buffer.resizable

/**
 * Frees a buffer earlier than the garbage collector would.
 * HAZARD: nothing may use its bytes, or a slice of them, any more. They are gone without an error.
 */
export const free = ({ buffer }: Buffer): void => {
  if (buffer instanceof ArrayBuffer && buffer.resizable) buffer.resize(0)
}

/**
 * Returns the same bytes, with little unused memory behind them. Call it for bytes whose buffer nothing else uses: a
 * buffer that grew in place shrinks. Bytes are copied if another buffer keeps more than twice as many in memory.
 */
export const compact = (bytes: Buffer): Buffer => {
  const { buffer, byteOffset, length } = bytes
  if (buffer instanceof ArrayBuffer && buffer.resizable) buffer.resize(byteOffset + length)
  return heldBy(bytes) > 2 * length ? Buffer.from(bytes) : bytes
}

/** No answer: it exceeds ANSWER_BYTES_MAX, or Elasticsearch has no memory or no room in its queue for it (429). */
export type TooMuch = 'too_large' | 'overloaded'

/** Returns the answer. @throws Refusal `unavailable` if there is none */
export const requireAnswer = (answer: Buffer | TooMuch): Buffer => {
  if (typeof answer === 'string') throw unavailable(`elasticsearch_${answer}`)
  return answer
}

/** @throws Refusal if these bytes may not be held: the rest of the answer is not read */
export type CountBytes = (bytes: number) => void

/**
 * Collects an answer as it arrives.
 * @param arrived called with the bytes of each chunk
 */
export const collect = (body: Readable, bytesMax: number, arrived: CountBytes): Promise<Buffer | 'too_large'> =>
  new Promise((resolve, reject) => {
    const whole = createCollector()
    let bytes = 0
    let ended = false
    const fail = (error: unknown): void => {
      // A request already uses the complete answer: an error of its connection must not free it.
      if (ended) return
      whole.drop()
      reject(error)
    }
    body.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > bytesMax) {
        whole.drop()
        resolve('too_large')
        body.destroy()
        return
      }
      try {
        arrived(chunk.length)
        whole.add(chunk)
      } catch (error) {
        fail(error)
        body.destroy()
      }
    })
    body.on('end', () => {
      ended = true
      resolve(whole.end())
    })
    body.on('error', fail)
    // An answer that breaks off has no `end` event.
    body.on('close', () => fail(unavailable('elasticsearch_answer_broke_off')))
  })

/**
 * Collects an answer from its chunks. A long answer grows in place. Chunks that are joined at the end would take twice
 * the bytes, and the garbage collector would free them late. With 80 fast readers of large answers: 550 MiB resident
 * with chunks, 430 MiB in place.
 */
const createCollector = () => {
  let parts: Buffer[] = []
  let bytes = 0
  let memory: ArrayBuffer | undefined

  const append = (part: Buffer): void => {
    memory ??= new ArrayBuffer(0, { maxByteLength: ANSWER_BYTES_MAX })
    const end = bytes + part.length
    if (end > memory.byteLength) memory.resize(Math.min(Math.ceil(end / SLICE.bytes) * SLICE.bytes, ANSWER_BYTES_MAX))
    part.copy(Buffer.from(memory), bytes)
    bytes = end
  }
  return {
    add: (part: Buffer): void => {
      parts.push(part)
      if (memory === undefined && parts.reduce((sum, { length }) => sum + length, 0) <= SLICE.bytes) return
      for (const one of parts) append(one)
      parts = []
    },
    end: (): Buffer => {
      const [first] = parts
      if (first && parts.length === 1) return first
      if (memory === undefined) return Buffer.concat(parts)
      memory.resize(bytes)
      return Buffer.from(memory, 0, bytes)
    },
    /** Frees the bytes so far. */
    drop: (): void => {
      parts = []
      memory?.resize(0)
    },
  }
}
