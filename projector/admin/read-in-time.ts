/** Limits the time of a read for receipts, so that its client gets an answer. */

import type { RetryOptions } from '../../core/runtime/index.ts'
import { RECEIPTS_POLL_TIMEOUT_MS } from '../limits.ts'

/** Runs a read with a signal that aborts after RECEIPTS_POLL_TIMEOUT_MS, or with one of `others`. */
export const readInTime = async <Result>(
  sleep: RetryOptions['sleep'],
  others: readonly AbortSignal[],
  read: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> => {
  const over = new AbortController()
  sleep(RECEIPTS_POLL_TIMEOUT_MS, over.signal).then(
    () => over.abort(),
    () => undefined,
  )
  try {
    return await read(AbortSignal.any([over.signal, ...others]))
  } finally {
    over.abort()
  }
}
