/**
 * Makes a generation beside the live one: the same topic from its first record, by the same steps, until it has caught
 * up. A stopped rebuild continues at its positions. Several processes share the partitions. They are not projectors, so
 * that a rebuild does not slow the live generation down.
 */

import { Registry } from 'prom-client'
import { archivedLog, type Bounds, type Ends, endWithin, type KafkaAccess, type VerifiedLog } from '../log/index.ts'
import { createHealth, type HealthLog, type Retrying, type RetryOptions, Unanswered } from '../runtime/index.ts'
import { type Clocks, clockMessages, createClocks, type Elasticsearch, type Positions } from '../store/index.ts'
import { CAUGHT_UP_MS, PACE_WAIT_MS, REBUILD_POLL_MS } from './limits.ts'
import { createProjectorMetrics } from './progress/metrics.ts'
import { kafkaLog } from './stream/kafka-log.ts'
import { endsOf } from './stream/monitor-source.ts'
import { type StreamContext, type StreamOptions, startStream, type TestHooks } from './stream/stream.ts'

export type RebuildContext = {
  /** The topic, or a verified archive of it. */
  readonly from: KafkaAccess | VerifiedLog
  readonly elasticsearch: Elasticsearch
  readonly retryOptions: Retrying['retryOptions']
  readonly now: () => number
  /** Milliseconds on a monotonic clock. */
  readonly elapsed: () => number
  /** Called with a line about trouble. */
  readonly say: (line: string) => void
  readonly onProgress: (progress: RebuildProgress) => void
  /** The published position of every partition, in order. */
  readonly positions: Positions
  /** The ends to reach: the positions of the followed generation, if any; otherwise the ends of the topic. */
  readonly ends?: () => Promise<readonly Pick<Ends[number], 'partition' | 'end'>[]>
  readonly signal: AbortSignal
  readonly testHooks?: TestHooks
}

/** Records published, and in total, over all partitions. */
export type RebuildProgress = { readonly done: number; readonly total: number }

/**
 * Resolves with `caught up` once all records of CAUGHT_UP_MS ago are published, or with `stopped` at the signal.
 * @param maxRate records a second, over all partitions
 * @throws StopError, or another error that ends the stream
 */
export const rebuildGeneration = async (
  options: StreamOptions,
  maxRate: number,
  context: RebuildContext,
): Promise<'caught up' | 'stopped'> => {
  const { from, elasticsearch, retryOptions, now, elapsed, say, signal, testHooks } = context
  const failure = Promise.withResolvers<never>()
  failure.promise.catch(() => undefined)
  const warn: HealthLog['warn'] = ({ part, reason }, message) => say(`${part} ${message}: ${reason}`)
  const isArchive = 'reader' in from
  const ours = {
    elasticsearch,
    retryOptions,
    now,
    elapsed,
    health: createHealth({ warn, info: () => undefined }, elapsed),
    metrics: createProjectorMetrics(new Registry()).of(options.stream, options.identity.generation),
  }
  const stream = await startStream(options, {
    ...ours,
    streamLog: isArchive ? archivedLog(from) : kafkaLog(options, { ...ours, ...from }),
    clocks: isArchive
      ? noClocks
      : createClocks({ send: elasticsearch.send, now, elapsed, onChange: code => say(clockMessages[code]) }),
    fail: failure.reject,
    pace: createPace(maxRate, elapsed, retryOptions.sleep, signal),
    ...testHooks,
  })
  try {
    const caughtUp = await Promise.race([
      waitForCatchUp(options.identity.topic, options.bounds, context),
      failure.promise,
    ])
    await stream.stop()
    return caughtUp ? 'caught up' : 'stopped'
  } catch (error) {
    await stream.abandon()
    throw error
  }
}

/** Nothing says up to which time an archive is complete: no time is published. */
const noClocks: Clocks = { read: () => undefined, state: () => ({ elasticsearch_ahead_ms: null, agree: true }) }

type CatchUp = Pick<
  RebuildContext,
  'from' | 'positions' | 'ends' | 'onProgress' | 'elapsed' | 'retryOptions' | 'signal'
>

/** Returns whether the generation has caught up; false at the signal. Waits while Kafka or Elasticsearch is away. */
export const waitForCatchUp = async (topic: string, bounds: Bounds | undefined, steps: CatchUp): Promise<boolean> => {
  const { from, positions, onProgress, elapsed, retryOptions, signal } = steps
  const readEnds = steps.ends ?? (async () => ('reader' in from ? from.archivedEnds : await endsOf(from.admin, topic)))
  const pause = () => retryOptions.sleep(REBUILD_POLL_MS, signal).catch(() => undefined)
  while (!signal.aborted) {
    const seen = elapsed()
    const all = await readEnds().catch(unlessUnavailable)
    if (all === undefined) {
      await pause()
      continue
    }
    const ends = all.map(({ partition, end }) => ({ partition, end: endWithin(partition, end, bounds) }))
    const total = ends.reduce((sum, { end }) => sum + end, 0)
    for (let done = -1; done < total; ) {
      if (signal.aborted) return false
      const reached = await positions().catch(unlessUnavailable)
      if (reached) {
        done = ends.reduce((sum, { partition, end }) => sum + Math.min(end, reached[partition] ?? 0), 0)
        onProgress({ done, total })
      }
      if (done < total) await pause()
    }
    if (elapsed() - seen < CAUGHT_UP_MS) return true
  }
  return false
}

/** The stream waits for Kafka and Elasticsearch, too, and says so. */
const unlessUnavailable = (error: unknown): undefined => {
  if (!(error instanceof Unanswered)) throw error
}

/** Limits throughput to `perSecond` records per second. */
const createPace = (
  perSecond: number,
  elapsed: () => number,
  sleep: RetryOptions['sleep'],
  signal: AbortSignal,
): StreamContext['pace'] => {
  let next = elapsed()
  return async (count, onWaiting) => {
    if (!Number.isFinite(perSecond)) return
    next = Math.max(next, elapsed()) + (count * 1_000) / perSecond
    const until = next
    for (let wait = until - elapsed(); wait > 0 && !signal.aborted; wait = until - elapsed()) {
      onWaiting()
      await sleep(Math.min(wait, PACE_WAIT_MS), signal).catch(() => undefined)
    }
  }
}
