/**
 * One large answer of an organization is read and made at a time. In: a request, and how many bytes it is about to
 * hold. Out: its turn.
 * Promises: of several that ask for large answers at once, one always has room for its reads and its answer: the others
 *   wait before they hold much. The turn ends when the answer is ready to be delivered, so that a slow client delays
 *   nobody.
 * Can go wrong: no turn in time → `unavailable`: other requests of the same organization take the turns.
 */
import { unavailable } from '../failures.ts'
import { LARGE_READ_BYTES, SMALL_ANSWER_BYTES } from '../limits.ts'
import type { Release, Semaphores } from './semaphore.ts'

export type Turn = {
  /** Waits until the request may hold this number of bytes. Does not wait where they are few. */
  readonly wait: (bytes: number) => Promise<void>
  /** Tells whether the request may hold this number of bytes now. Takes the turn where one is needed and free. */
  readonly tryNow: (bytes: number) => boolean
  readonly isMine: () => boolean
  readonly end: () => void
}

/** @param from bytes above which an answer is large */
export const createTurn = (turns: Semaphores, org: string, from: number, signal: AbortSignal): Turn => {
  // A request may read several things at once: they share one turn.
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

/**
 * Bytes of reads above which a request needs the turn. Changes and histories are copied: they need as much again for
 * the answer.
 */
export const largeFrom = (route: string | undefined): number =>
  route !== undefined && COPIED.test(route) ? SMALL_ANSWER_BYTES : LARGE_READ_BYTES
const COPIED = /\/(?:changes|history)$/
