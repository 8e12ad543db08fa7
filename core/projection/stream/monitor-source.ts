/**
 * Loops that watch a stream until the signal: the ends of its partitions, the identity of its source, and its progress.
 */

import type { Stream } from '../../../schemas/events.ts'
import {
  assertNotTruncated,
  assertSameSource,
  asUnanswered,
  type Bounds,
  checkTopicConfiguration,
  describeSource,
  type Ends,
  endOfPartition,
  endWithin,
  fetchEnds,
  type GenerationBody,
  type KnownRecords,
  type SourceAdmin,
  type StreamLog,
} from '../../log/index.ts'
import {
  type Health,
  type HealthPart,
  type ReportTrouble,
  type RetryOptions,
  StopError,
  shared,
  Unanswered,
} from '../../runtime/index.ts'
import { type Clocks, IDENTIFY_INTERVAL_MS } from '../../store/index.ts'
import type { Committer } from '../flow/stream-side.ts'
import {
  ENDS_INTERVAL_MS,
  ENDS_LATE_MS,
  VERIFYING_PAUSE_FACTOR,
  VERIFYING_PAUSE_MAX_MS,
  VERIFYING_TRUSTED_MS,
  WATCHDOG_GAP_MS,
  WATCHDOG_INTERVAL_MS,
} from '../limits.ts'
import type { StreamMetrics } from '../progress/metrics.ts'
import type { Watchdog } from '../progress/watchdog.ts'
import type { Assignment } from './assign.ts'

export type MonitoredStream = {
  readonly stream: Stream
  readonly identity: GenerationBody
  readonly bounds?: Bounds | undefined
  /** The name of the stream in the health report. */
  readonly part: HealthPart
  readonly assignment: Assignment
  readonly committer: Committer
  readonly watchdog: Watchdog
  /** `verify` waits until Kafka answers. */
  readonly verification: Pick<SourceVerifier, 'pause' | 'isFresh'> & {
    readonly verify: (signal: AbortSignal) => Promise<void>
  }
}

type MonitorContext = {
  readonly streamLog: Pick<StreamLog, 'ends'>
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
  const looks: Looks = { readAt: context.elapsed(), trouble: undefined }
  // Each stream has its own reason: another one, which reads its ends, must not take it back.
  await context.health.during('kafka', report =>
    Promise.all([
      watchEnds(watched, context, looks, report, signal),
      watchProgress(watched, context, looks, report, signal),
      verifyPeriodically(watched, context, signal),
    ]),
  )
}

/** When the ends were read last, in milliseconds of a monotonic clock, and why they were not since. */
type Looks = { readAt: number; trouble: string | undefined }

/** Without topic ids, only this detects a topic that was created again between two fetches. */
const verifyPeriodically = async (
  { verification }: MonitoredStream,
  { retryOptions, fail }: MonitorContext,
  signal: AbortSignal,
): Promise<void> => {
  for (;;) {
    await retryOptions.sleep(verification.pause(), signal).catch(() => undefined)
    if (signal.aborted) return
    try {
      await verification.verify(signal)
    } catch (error) {
      if (!signal.aborted) fail(error)
      return
    }
  }
}

/** Reads the ends of the partitions every ENDS_INTERVAL_MS. */
const watchEnds = async (
  { stream, identity, bounds, part, assignment, committer, verification }: MonitoredStream,
  { streamLog, clocks, elapsed, now, metrics, retryOptions, health, fail }: MonitorContext,
  looks: Looks,
  report: ReportTrouble,
  signal: AbortSignal,
): Promise<void> => {
  while (!signal.aborted) {
    try {
      // Nobody asks up to which time API keys are included: they have no published time, and no age.
      const hasTime = stream === 'events'
      const reading = hasTime ? clocks.read() : undefined
      const before = assignment.flows().map(([partition, flow]) => ({ partition, flow, ...flow.progress }))
      // Also while Kafka does not answer: the age grows then.
      if (hasTime)
        for (const { publishedUntil } of before) metrics.observeAge(Math.max(0, now() - publishedUntil) / 1000)
      const ends = await streamLog.ends()
      for (const { partition, flow, publishedTo, publishedUntil } of before) {
        assertNotTruncated(identity.topic, partition, publishedTo, ends)
        const end = endOfPartition(partition, ends)
        const wanted = endWithin(partition, end, bounds)
        if (assignment.isTrusted(partition) && verification.isFresh()) {
          flow.sawEnd(wanted)
          // Records after a bound are not included, so no time can be published.
          if (reading !== undefined && wanted === end)
            flow.sawClocks(reading, { end, logEnd: logEndOf(partition, ends), publishedUntil })
        }
        void committer.offer(partition, publishedTo)
      }
      looks.readAt = elapsed()
      looks.trouble = undefined
      report(undefined)
      if (assignment.isReading) health.set(part, undefined)
    } catch (error) {
      if (!(error instanceof Unanswered)) return fail(error)
      looks.trouble = error.why
      report(error.why)
    }
    await retryOptions.sleep(ENDS_INTERVAL_MS, signal).catch(() => undefined)
  }
}

/** Returns the end that the position must reach before a time may be published. */
const logEndOf = (partition: number, ends: Ends): number => {
  const end = endOfPartition(partition, ends)
  return Math.max(end, ends.find(candidate => candidate.partition === partition)?.logEnd ?? end)
}

/** Fails the stream when nothing moves although it could. */
const watchProgress = async (
  { identity: { topic }, assignment, watchdog }: MonitoredStream,
  { elapsed, retryOptions, fail }: MonitorContext,
  looks: Looks,
  report: ReportTrouble,
  signal: AbortSignal,
): Promise<void> => {
  for (let before = elapsed(); ; before = elapsed()) {
    await retryOptions.sleep(WATCHDOG_INTERVAL_MS, signal).catch(() => undefined)
    if (signal.aborted) return
    // The client reports a silent Kafka only after minutes. Just after this process was frozen, nothing is known yet.
    const wasFrozen = elapsed() - before > WATCHDOG_GAP_MS
    if (!wasFrozen && elapsed() - looks.readAt > ENDS_LATE_MS) report(looks.trouble ?? 'does not answer')
    const stuck = watchdog.check(elapsed(), assignment.standing())
    if (stuck === 'out of the group') return fail(new StopError('stuck', stuck, { topic }))
    if (stuck === undefined) continue
    // Logs call the published position `searchableTo`.
    const { partition, phase, readTo, writtenTo, publishedTo: searchableTo, end } = stuck
    const where = { topic, partition, phase, readTo, writtenTo, searchableTo, end }
    return fail(new StopError('stuck', 'a partition', where))
  }
}

/** @throws Unanswered when Kafka does not answer; StopError `access_refused` */
export const endsOf = (admin: SourceAdmin, topic: string): Promise<Ends> => fetchEnds(admin, topic).catch(asUnanswered)

/**
 * Checks cluster, partitions, configuration and the start of the log. Returns warnings about weaker guarantees.
 * @throws StopError if one differs
 */
export const identify = async (
  admin: SourceAdmin,
  identity: GenerationBody,
  messageBytes?: number,
): Promise<readonly string[]> => {
  try {
    assertSameSource(identity, await describeSource(admin, identity.topic))
    const warnings = await checkTopicConfiguration(admin, identity.topic, messageBytes)
    await fetchEnds(admin, identity.topic)
    return warnings
  } catch (error) {
    return asUnanswered(error)
  }
}

/**
 * Verifies the source of a stream: its identity, and the last known record of every partition, also of those that other
 * processes own. A partition that was empty has nothing to compare, so the other partitions vouch for it.
 */
export type SourceVerifier = {
  /** @throws StopError; Unanswered */
  readonly verify: () => Promise<void>
  /** A run that began before does not count any more. */
  readonly onReconnected: () => void
  /** Milliseconds to wait after the last run. */
  readonly pause: () => number
  /** Whether the source was verified lately. If not, it may be another one by now, and no time is published. */
  readonly isFresh: () => boolean
}

type VerifierSteps = {
  readonly topic: string
  readonly streamLog: Pick<StreamLog, 'identify' | 'ends' | 'verify'>
  /** Reads the position of every partition. */
  readonly known: () => Promise<KnownRecords>
  /** A run has read further after a last known record. */
  readonly onFurther: () => void
  /** Milliseconds of a monotonic clock. */
  readonly elapsed: () => number
}

/** Callers at the same time share a run, but never one that began before a new connection of the consumer. */
export const createSourceVerifier = ({
  topic,
  streamLog,
  known,
  onFurther,
  elapsed,
}: VerifierSteps): SourceVerifier => {
  let [pause, freshUntil, connections] = [IDENTIFY_INTERVAL_MS, Number.NEGATIVE_INFINITY, 0]
  const run = async (): Promise<void> => {
    const [began, connectionsBefore] = [elapsed(), connections]
    // First, so that an added partition is an added partition, and no missing position.
    await streamLog.identify()
    const positions = await known()
    // After the positions: other owners may have published past ends that were read before.
    const ends = await streamLog.ends()
    for (const [partition, { position }] of positions.entries()) assertNotTruncated(topic, partition, position, ends)
    await streamLog.verify(positions, onFurther)
    if (connections !== connectionsBefore) return
    pause = Math.min(
      VERIFYING_PAUSE_MAX_MS,
      Math.max(IDENTIFY_INTERVAL_MS, (elapsed() - began) * VERIFYING_PAUSE_FACTOR),
    )
    freshUntil = elapsed() + pause + VERIFYING_TRUSTED_MS
  }
  let verify = shared(run)
  return {
    verify: () => verify(),
    onReconnected: () => {
      connections++
      freshUntil = Number.NEGATIVE_INFINITY
      verify = shared(run)
    },
    pause: () => pause,
    isFresh: () => elapsed() < freshUntil,
  }
}
