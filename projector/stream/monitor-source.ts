/**
 * Loops that watch a stream until the signal: the ends of its partitions, the identity of its source, and its progress.
 */

import type { Stream } from '../../schemas/events.ts'
import { type RetryOptions, Unavailable } from '../elasticsearch/client.ts'
import type { Clocks } from '../elasticsearch/clocks.ts'
import { asUnavailable } from '../elasticsearch/retry.ts'
import { StopError } from '../failures.ts'
import type { Health, HealthPart } from '../health.ts'
import {
  assertNotTruncated,
  assertSameSource,
  checkTopicConfiguration,
  describeSource,
  type Ends,
  fetchEnds,
  type GenerationBody,
  type SourceAdmin,
} from '../kafka/source.ts'
import {
  ENDS_INTERVAL_MS,
  ENDS_LATE_MS,
  IDENTIFY_INTERVAL_MS,
  WATCHDOG_GAP_MS,
  WATCHDOG_INTERVAL_MS,
} from '../limits.ts'
import type { Assignment } from './assign.ts'
import type { Committer } from './commit.ts'
import type { StreamMetrics } from './metrics.ts'
import { type Bounds, endWithin } from './stop-at.ts'
import type { StreamLog } from './stream-log.ts'
import type { Watchdog } from './watchdog.ts'

export type MonitoredStream = {
  readonly stream: Stream
  readonly identity: GenerationBody
  readonly bounds?: Bounds | undefined
  /** The name of the stream in the health report. */
  readonly part: HealthPart
  readonly assignment: Assignment
  readonly committer: Committer
  readonly watchdog: Watchdog
}

type MonitorContext = {
  readonly streamLog: Pick<StreamLog, 'identify' | 'ends'>
  readonly clocks: Pick<Clocks, 'read'>
  /** Milliseconds on a monotonic clock. */
  readonly elapsed: () => number
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly metrics: Pick<StreamMetrics, 'observeAge'>
  readonly retryOptions: Pick<RetryOptions, 'sleep'>
  readonly health: Health
  readonly fail: (error: unknown) => void
}

export const monitorSource = async (
  watched: MonitoredStream,
  context: MonitorContext,
  signal: AbortSignal,
): Promise<void> => {
  let endsSeen = context.elapsed()
  const onEndsRead = (): void => {
    endsSeen = context.elapsed()
  }
  await Promise.all([
    watchEnds(watched, context, onEndsRead, signal),
    watchProgress(watched, context, () => endsSeen, signal),
  ])
}

/** Reads the ends of the partitions every ENDS_INTERVAL_MS, and identifies the source every IDENTIFY_INTERVAL_MS. */
const watchEnds = async (
  { stream, identity, bounds, part, assignment, committer }: MonitoredStream,
  { streamLog, clocks, elapsed, now, metrics, retryOptions, health, fail }: MonitorContext,
  onEndsRead: () => void,
  signal: AbortSignal,
): Promise<void> => {
  let identified = elapsed()
  while (!signal.aborted) {
    try {
      const time = elapsed()
      // Nobody asks up to which time API keys are included.
      const reading = stream === 'events' ? clocks.read() : undefined
      const before = assignment.flows().map(([partition, flow]) => ({ partition, flow, ...flow.progress }))
      // Also while Kafka does not answer: the age grows then.
      for (const { publishedUntil } of before)
        if (publishedUntil > 0) metrics.observeAge(Math.max(0, now() - publishedUntil) / 1000)
      const due = time - identified >= IDENTIFY_INTERVAL_MS
      // Never share an identification begun before `time`: its ends would be older than `reading`.
      const ends = due ? await streamLog.identify() : await streamLog.ends()
      if (due) identified = time
      for (const { partition, flow, publishedTo } of before) {
        assertNotTruncated(identity.topic, partition, publishedTo, ends)
        const end = ends.find(candidate => candidate.partition === partition)?.end ?? 0
        const wanted = endWithin(partition, end, bounds)
        // Records after a bound are not included, so no time can be published.
        if (assignment.isTrusted(partition)) flow.sawEnd(wanted, wanted === end ? reading : undefined)
        void committer.offer(partition, publishedTo)
      }
      // Only this detects a topic that was created again between two fetches.
      if (due) assignment.verifyAgain()
      onEndsRead()
      health.set('kafka', undefined)
      if (assignment.isReading) health.set(part, undefined)
    } catch (error) {
      if (!(error instanceof Unavailable)) return fail(error)
      health.set('kafka', 'does not answer')
    }
    await retryOptions.sleep(ENDS_INTERVAL_MS, signal).catch(() => undefined)
  }
}

/** Fails the stream when nothing moves although it could. */
const watchProgress = async (
  { identity: { topic }, assignment, watchdog }: MonitoredStream,
  { elapsed, retryOptions, health, fail }: MonitorContext,
  endsSeen: () => number,
  signal: AbortSignal,
): Promise<void> => {
  for (let before = elapsed(); ; before = elapsed()) {
    await retryOptions.sleep(WATCHDOG_INTERVAL_MS, signal).catch(() => undefined)
    if (signal.aborted) return
    // The client reports a silent Kafka only after minutes. Just after this process was frozen, nothing is known yet.
    const wasFrozen = elapsed() - before > WATCHDOG_GAP_MS
    if (!wasFrozen && elapsed() - endsSeen() > ENDS_LATE_MS) health.set('kafka', 'does not answer')
    const stuck = watchdog.check(elapsed(), assignment.standing())
    if (stuck === 'out of the group') return fail(new StopError('stuck', stuck, { topic }))
    if (stuck !== undefined) return fail(new StopError('stuck', 'a partition', { topic, ...stuck }))
  }
}

/** @throws Unavailable when Kafka does not answer; StopError `access_refused` */
export const endsOf = (admin: SourceAdmin, topic: string): Promise<Ends> => fetchEnds(admin, topic).catch(asUnavailable)

/** Checks cluster, partitions, configuration and the start of the log. @throws StopError if one differs */
export const identify = async (admin: SourceAdmin, identity: GenerationBody): Promise<Ends> => {
  try {
    assertSameSource(identity, await describeSource(admin, identity.topic))
    await checkTopicConfiguration(admin, identity.topic)
    return await fetchEnds(admin, identity.topic)
  } catch (error) {
    return asUnavailable(error)
  }
}
