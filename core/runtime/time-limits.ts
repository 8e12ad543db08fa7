/** Timers, and work that ends when its time is up or its client has gone. */
import { type Refusal, unavailable } from './refusals.ts'

/** Runs a callback after these milliseconds. Returns a function that cancels it. */
export type Schedule = (milliseconds: number, run: () => void) => () => void

/** The timers of the process. */
export const scheduleTimer: Schedule = (milliseconds, run) => {
  const timeout = setTimeout(run, milliseconds)
  return () => clearTimeout(timeout)
}

/** Returns the reason of an abort signal: an AbortError. The Elasticsearch client takes any other for a failed node. */
export const abortReason = (word: 'time_is_up' | 'client_gone'): DOMException => new DOMException(word, 'AbortError')

/** Whether a signal has aborted because the time is up. */
export const isTimeUp = ({ aborted, reason }: AbortSignal): boolean => aborted && reason?.message === 'time_is_up'

/** Returns the refusal of a request whose signal has aborted. */
export const abortRefusal = ({ reason }: AbortSignal): Refusal => unavailable(reason.message)

/** Returns the result of the task. @throws Refusal `unavailable` if the signal aborts first */
export const waitOrAbort = <Result>(task: Promise<Result>, signal: AbortSignal): Promise<Result> => {
  const aborted = Promise.withResolvers<never>()
  const rejectOnAbort = () => aborted.reject(abortRefusal(signal))
  if (signal.aborted) rejectOnAbort()
  signal.addEventListener('abort', rejectOnAbort)
  return Promise.race([task, aborted.promise]).finally(() => signal.removeEventListener('abort', rejectOnAbort))
}

/** Runs work with a signal that aborts after these milliseconds. Rejects as the work does. */
export const withTimeLimit = async <Result>(
  milliseconds: number,
  later: Schedule,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> => {
  const controller = new AbortController()
  const cancel = later(milliseconds, () => controller.abort(abortReason('time_is_up')))
  try {
    return await work(controller.signal)
  } finally {
    cancel()
  }
}

/**
 * Returns a signal that aborts once all of these have. Undefined stands for one that never does. Without `dispose` it
 * would be kept as long as the signals.
 */
export const whenAllEnd = (
  signals: readonly (AbortSignal | undefined)[],
): { readonly signal: AbortSignal } & Disposable => {
  const ending = new AbortController()
  const abortIfAllEnded = (): void => {
    if (signals.every(signal => signal?.aborted)) ending.abort(signals[0]?.reason)
  }
  for (const signal of signals) signal?.addEventListener('abort', abortIfAllEnded)
  return {
    signal: ending.signal,
    [Symbol.dispose]: () => {
      for (const signal of signals) signal?.removeEventListener('abort', abortIfAllEnded)
    },
  }
}
