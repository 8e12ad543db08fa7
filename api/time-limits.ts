/** Timers, and work that ends when its time is up or its client has gone. */
import { unavailable } from './failures.ts'

/** Runs something after so many milliseconds, unless it is cancelled before. */
export type Later = (milliseconds: number, run: () => void) => () => void

export const timer: Later = (milliseconds, run) => {
  const timeout = setTimeout(run, milliseconds)
  return () => clearTimeout(timeout)
}

/**
 * Why reads are ended, as the reason of a signal. An AbortError: of any other the client would think that the node has
 * failed.
 */
export const endingBecause = (word: 'time_is_up' | 'client_gone'): DOMException => new DOMException(word, 'AbortError')

/** The result of the task, unless the signal ends the wait first: then `unavailable`. */
export const untilOver = <Result>(task: Promise<Result>, signal: AbortSignal): Promise<Result> => {
  const over = Promise.withResolvers<never>()
  const end = () => over.reject(unavailable((signal.reason as DOMException).message))
  if (signal.aborted) end()
  signal.addEventListener('abort', end)
  return Promise.race([task, over.promise]).finally(() => signal.removeEventListener('abort', end))
}

/** Runs work with a signal that aborts after so many milliseconds. */
export const withTimeLimit = async <Result>(
  milliseconds: number,
  later: Later,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> => {
  const ending = new AbortController()
  const cancel = later(milliseconds, () => ending.abort(endingBecause('time_is_up')))
  try {
    return await work(ending.signal)
  } finally {
    cancel()
  }
}
