/**
 * Makes a generation beside the live one: the same topic from its first record on, by the same steps, until it has
 * caught up. It can be stopped at any time and goes on where its positions are; several at once share the partitions.
 */

import type { Elasticsearch, Patience } from './elasticsearch/client.ts'
import { clockSays, createClocks } from './elasticsearch/clocks.ts'
import type { Positions } from './generations/generations.ts'
import { createHealth, type HealthLog } from './health.ts'
import { type Ends, fetchEnds, type SourceAdmin } from './kafka/source.ts'
import { CAUGHT_UP_MS, REBUILD_LOOK_MS } from './limits.ts'
import { createMetrics } from './stream/metrics.ts'
import { type Bounds, endWithin } from './stream/stop-at.ts'
import { type StreamContext, type StreamOptions, startStream, type TestHooks } from './stream/stream.ts'

export type RebuildContext = {
  readonly kafkaWithConnectHook: StreamContext['kafkaWithConnectHook']
  readonly admin: SourceAdmin
  readonly elasticsearch: Elasticsearch
  readonly patience: Omit<Patience, 'onTrouble'>
  readonly now: () => number
  /** Milliseconds on a clock that never goes back. */
  readonly elapsed: () => number
  /** Told what does not work, and that it works again. */
  readonly say: (line: string) => void
  readonly onProgress: (progress: RebuildProgress) => void
  /** The published position of every partition, in order. */
  readonly positions: Positions
  /** What is to be reached, of one that follows another: where that one is. Otherwise where the topic ends. */
  readonly ends?: () => Promise<readonly Pick<Ends[number], 'partition' | 'end'>[]>
  readonly signal: AbortSignal
  readonly testHooks?: TestHooks
}

/** Records published and to be published, over all partitions. */
export type RebuildProgress = { readonly done: number; readonly total: number }

/**
 * Resolves once all that was in the topic a moment ago is published, or with `stopped` when the signal came before.
 * @param maxRate records a second, over all partitions
 * @throws StopError, or whatever else ends a stream
 */
export const rebuild = async (
  options: StreamOptions,
  maxRate: number,
  context: RebuildContext,
): Promise<'caught up' | 'stopped'> => {
  const { kafkaWithConnectHook, admin, elasticsearch, patience, now, elapsed, say, signal, testHooks } = context
  const failure = Promise.withResolvers<never>()
  failure.promise.catch(() => undefined)
  const tell: HealthLog['warn'] = ({ part, reason }, message) => say(`${part} ${message}: ${reason}`)
  const stream = await startStream(options, {
    kafkaWithConnectHook,
    admin,
    elasticsearch,
    patience,
    now,
    elapsed,
    clocks: createClocks({ send: elasticsearch.send, now, elapsed, onChange: code => say(clockSays[code]) }),
    health: createHealth({ warn: tell, info: () => undefined }, elapsed),
    metrics: createMetrics(() => []).of(options.stream),
    fail: failure.reject,
    pace: createPace(maxRate, elapsed, patience.sleep, signal),
    ...testHooks,
  })
  try {
    const caughtUp = await Promise.race([
      untilCaughtUp(options.identity.topic, options.bounds, context),
      failure.promise,
    ])
    await stream.stop()
    return caughtUp ? 'caught up' : 'stopped'
  } catch (error) {
    await stream.abandon()
    throw error
  }
}

/** Whether everything that was there a moment ago is published; false when it is stopped. */
const untilCaughtUp = async (topic: string, bounds: Bounds | undefined, context: RebuildContext): Promise<boolean> => {
  const { admin, positions, onProgress, elapsed, patience, signal } = context
  for (;;) {
    const seen = elapsed()
    const all = (await context.ends?.()) ?? (await fetchEnds(admin, topic))
    const ends = all.map(({ partition, end }) => ({ partition, end: endWithin(partition, end, bounds) }))
    const total = ends.reduce((sum, { end }) => sum + end, 0)
    for (let done = -1; done < total; ) {
      if (signal.aborted) return false
      const reached = await positions()
      done = ends.reduce((sum, { partition, end }) => sum + Math.min(end, reached[partition] ?? 0), 0)
      onProgress({ done, total })
      if (done < total) await patience.sleep(REBUILD_LOOK_MS, signal).catch(() => undefined)
    }
    if (elapsed() - seen < CAUGHT_UP_MS) return true
  }
}

/** Limits throughput to `perSecond` records per second. */
const createPace = (perSecond: number, elapsed: () => number, sleep: Patience['sleep'], signal: AbortSignal) => {
  let next = elapsed()
  return async (count: number): Promise<void> => {
    if (!Number.isFinite(perSecond)) return
    next = Math.max(next, elapsed()) + (count * 1_000) / perSecond
    const wait = next - elapsed()
    if (wait > 0) await sleep(wait, signal).catch(() => undefined)
  }
}
