/**
 * kafkajs checks the queue of each connection a thousand times a second, also an empty one. Cause: it computes a
 * negative delay for the next check, and a timer treats that as one millisecond. `checkOnlyPendingRequests` skips the
 * check of an empty queue. A request that must wait starts the checks again.
 */
import { loadKafkajs } from './load-kafkajs.ts'

type RequestQueue = { readonly pending: readonly object[]; scheduleCheckPendingRequests(): void }

let repaired = false

/** Must be called before the first connection. Idempotent. */
export const checkOnlyPendingRequests = (): void => {
  if (repaired) return
  repaired = true
  const { prototype } = loadKafkajs<{ readonly prototype: RequestQueue }>('network/requestQueue')
  const { scheduleCheckPendingRequests } = prototype
  prototype.scheduleCheckPendingRequests = function () {
    if (this.pending.length > 0) scheduleCheckPendingRequests.call(this)
  }
}
