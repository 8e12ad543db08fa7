/**
 * The way to Elasticsearch that the partitions of a stream share. In: requests of each partition. Out: their answers.
 * Promises: small requests of several partitions go together. Bulk requests in flight have a bound, and wait for a
 * refresh that readers wait for.
 */
import { createWeightedSemaphore, limitConcurrency, type Retrying } from '../../runtime/index.ts'
import {
  bulks,
  createBatcher,
  createRefresh,
  ELASTICSEARCH_SLOW_MS,
  type Elasticsearch,
  primaryReads,
  type Refreshing,
  replacements,
  retryUntilAborted,
  type Send,
} from '../../store/index.ts'
import { BULKS_IN_FLIGHT, DECIDED_BYTES, REFRESH_INTERVAL_MS } from '../limits.ts'

type StoreContext = Retrying & {
  readonly elasticsearch: Elasticsearch
  /** Milliseconds on a monotonic clock. */
  readonly elapsed: () => number
  /** Milliseconds between two refreshes. */
  readonly freshnessMs?: number
}

export class StreamStore {
  readonly context: StoreContext
  readonly refreshing: Refreshing
  /** Limits the bytes of records that are decided or written, over all partitions. */
  readonly budget = createWeightedSemaphore(DECIDED_BYTES)
  readonly sendRead: Send
  readonly sendWrite: Send
  /** Sends the conditional writes of positions. */
  readonly replace: Send

  constructor(context: StoreContext) {
    const { elasticsearch, health } = context
    const limitBulks = limitConcurrency(BULKS_IN_FLIGHT)
    this.context = context
    this.refreshing = createRefreshing(context)
    this.replace = createBatcher(replacements, elasticsearch.send)
    this.sendRead = createBatcher(primaryReads, elasticsearch.send)
    const sendBulk: Send = (request, signal) =>
      limitBulks(() =>
        health.during('elasticsearch write', () => elasticsearch.send(request, signal), ELASTICSEARCH_SLOW_MS),
      )
    this.sendWrite = createBatcher(bulks, sendBulk, this.refreshing.untilRefreshed)
  }
}

const createRefreshing = (context: StoreContext): Refreshing => {
  const { elapsed, retryOptions, elasticsearch } = context
  const lifetime = new AbortController().signal
  return createRefresh({
    keepTrying: attempt => retryUntilAborted('refresh', lifetime, context, attempt),
    send: request => elasticsearch.send(request),
    elapsed,
    sleep: milliseconds => retryOptions.sleep(milliseconds, lifetime),
    interval: context.freshnessMs ?? REFRESH_INTERVAL_MS,
  })
}
