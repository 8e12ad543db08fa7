/**
 * kafkajs looks at the queue of each connection a thousand times a second, also when nothing waits there: the time of
 * its next look is negative, and a timer takes that for one millisecond. `checkOnlyPendingRequests` removes the looks
 * at an empty queue. A request that must wait still starts the looks itself.
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
