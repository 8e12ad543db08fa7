/** Work that no single request ends: several requests may wait for it, and it has a time limit of its own. */
import { unavailable } from './failures.ts'
import type { Later } from './gather.ts'
import { endingBecause } from './request.ts'

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
