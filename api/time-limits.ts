/** Timers, and work that ends when its time is up or its client has gone. */
import { unavailable } from './failures.ts'

/** Runs a callback after these milliseconds. Returns a function that cancels it. */
export type Schedule = (milliseconds: number, run: () => void) => () => void

export const scheduleTimer: Schedule = (milliseconds, run) => {
  const timeout = setTimeout(run, milliseconds)
  return () => clearTimeout(timeout)
}

/** Returns the reason of an abort signal: an AbortError. The Elasticsearch client takes any other for a failed node. */
export const abortReason = (word: 'time_is_up' | 'client_gone'): DOMException => new DOMException(word, 'AbortError')

/** Returns the result of the task. @throws Refusal `unavailable` if the signal aborts first */
export const waitOrAbort = <Result>(task: Promise<Result>, signal: AbortSignal): Promise<Result> => {
  const over = Promise.withResolvers<never>()
  const end = () => over.reject(unavailable((signal.reason as DOMException).message))
  if (signal.aborted) end()
  signal.addEventListener('abort', end)
  return Promise.race([task, over.promise]).finally(() => signal.removeEventListener('abort', end))
}

/** Runs work with a signal that aborts after these milliseconds. */
export const withTimeLimit = async <Result>(
  milliseconds: number,
  later: Schedule,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> => {
  const ending = new AbortController()
  const cancel = later(milliseconds, () => ending.abort(abortReason('time_is_up')))
  try {
    return await work(ending.signal)
  } finally {
    cancel()
  }
}
