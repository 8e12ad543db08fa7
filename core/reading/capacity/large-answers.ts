/**
 * Lets one large answer of an organization be read and made at a time. In: a request, and the bytes it is about to
 * hold. Out: its turn.
 * Promises: of several requests for large answers, one always has room for its reads and its answer, because the others
 *   wait before they hold much. The turn ends when the answer is ready for delivery, so that a slow client delays
 *   nobody.
 * Can go wrong: no turn in time → `unavailable`: other requests take the turns.
 */

import { type Release, type Semaphores, unavailable } from '../../runtime/index.ts'
import { SMALL_ANSWER_BYTES } from '../../store/index.ts'
import { LARGE_READ_BYTES } from '../limits.ts'

export type Turn = {
  /** Waits until the request may hold this number of bytes. A small number does not wait. */
  readonly wait: (bytes: number) => Promise<void>
  /** Returns whether the request may hold this number of bytes now. Takes a free turn if one is needed. */
  readonly tryNow: (bytes: number) => boolean
  readonly isMine: () => boolean
  readonly end: () => void
}

/** @param from an answer is large above this number of bytes */
export const createTurn = (turns: Semaphores, org: string, from: number, signal: AbortSignal): Turn => {
  // Parallel reads of one request share one turn.
  let acquired: Promise<Release | undefined> | undefined
  let isMine = false
  let ended = false
  return {
    wait: async bytes => {
      if (bytes <= from || ended) return
      acquired ??= turns.acquire(org, signal)
      if ((await acquired) === undefined) throw unavailable('large_answers')
      isMine = true
    },
    tryNow: bytes => {
      if (bytes <= from || isMine || ended) return true
      const release = acquired === undefined ? turns.tryAcquire(org) : undefined
      if (release === undefined) return false
      acquired = Promise.resolve(release)
      isMine = true
      return true
    },
    isMine: () => isMine,
    end: () => {
      ended = true
      acquired?.then(
        release => release?.(),
        () => undefined,
      )
    },
  }
}

/** Returns the bytes of reads above which a turn is needed. An answer that is a copy needs as much again. */
export const largeFrom = (isCopied: boolean): number => (isCopied ? SMALL_ANSWER_BYTES : LARGE_READ_BYTES)
