/**
 * What a stream looks after besides its records, each in a loop of its own until the signal: where its partitions end
 * and whether the source is still the same one; and whether it is stuck.
 */

import { type Patience, Unavailable } from '../elasticsearch/client.ts'
import type { Clocks } from '../elasticsearch/clocks.ts'
import { StopError } from '../failures.ts'
import type { Health } from '../health.ts'
import {
  assertNotTruncated,
  assertSameSource,
  checkTopicConfiguration,
  describeSource,
  type Ends,
  fetchEnds,
  type Identity,
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
import { type Bounds, endWithin } from './stop-at.ts'
import type { Watchdog } from './watchdog.ts'

export type Watched = {
  readonly identity: Identity
  readonly bounds?: Bounds | undefined
  /** As it stands in the health report. */
  readonly part: string
  readonly assignment: Assignment
  readonly committer: Committer
  readonly watchdog: Watchdog
}

export type WatchContext = {
  readonly admin: SourceAdmin
  readonly clocks: Pick<Clocks, 'read'>
  /** Milliseconds on a clock that never goes back. */
  readonly elapsed: () => number
  readonly patience: Pick<Patience, 'sleep'>
  readonly health: Health
  readonly fail: (error: unknown) => void
}

export const watch = async (watched: Watched, context: WatchContext, signal: AbortSignal): Promise<void> => {
  let endsSeen = context.elapsed()
  const sawEnds = (): void => {
    endsSeen = context.elapsed()
  }
  await Promise.all([
    watchEnds(watched, context, sawEnds, signal),
    watchProgress(watched, context, () => endsSeen, signal),
  ])
}

/** Looks where the partitions end, often, and whether the source is still the same, now and then. */
const watchEnds = async (
  { identity, bounds, part, assignment, committer }: Watched,
  { admin, clocks, elapsed, patience, health, fail }: WatchContext,
  sawEnds: () => void,
  signal: AbortSignal,
): Promise<void> => {
  let identified = elapsed()
  while (!signal.aborted) {
    try {
      const time = elapsed()
      const reading = clocks.read()
      const before = assignment.flows().map(([partition, flow]) => ({ partition, flow, ...flow.progress }))
      const due = time - identified >= IDENTIFY_INTERVAL_MS
      // Never an identification that was begun before `time`: its ends would be older than what they are told with.
      const ends = due ? await identify(admin, identity) : await fetchEnds(admin, identity.topic)
      if (due) identified = time
      for (const { partition, flow, searchableTo } of before) {
        assertNotTruncated(identity.topic, partition, searchableTo, ends)
        const end = ends.find(candidate => candidate.partition === partition)?.end ?? 0
        const wanted = endWithin(partition, end, bounds)
        // What lies behind a bound is not included: no time can be told then.
        if (assignment.isTrusted(partition)) flow.sawEnd(wanted, wanted === end ? reading : undefined)
        void committer.offer(partition, searchableTo)
      }
      // A topic that was made anew between two fetches shows in nothing else.
      if (due) assignment.verifyAgain()
      sawEnds()
      health.set('kafka', undefined)
      if (assignment.isReading) health.set(part, undefined)
    } catch (error) {
      if (error instanceof StopError) return fail(error)
      health.set('kafka', 'does not answer')
    }
    await patience.sleep(ENDS_INTERVAL_MS, signal).catch(() => undefined)
  }
}

/** Ends the process when nothing moves, although it could. */
const watchProgress = async (
  { identity: { topic }, assignment, watchdog }: Watched,
  { elapsed, patience, health, fail }: WatchContext,
  endsSeen: () => number,
  signal: AbortSignal,
): Promise<void> => {
  for (let before = elapsed(); ; before = elapsed()) {
    await patience.sleep(WATCHDOG_INTERVAL_MS, signal).catch(() => undefined)
    if (signal.aborted) return
    // The client itself waits for minutes before it gives up. Where it was us who did not run, nothing is known yet.
    const wasFrozen = elapsed() - before > WATCHDOG_GAP_MS
    if (!wasFrozen && elapsed() - endsSeen() > ENDS_LATE_MS) health.set('kafka', 'does not answer')
    const stuck = watchdog.look(elapsed(), assignment.standing())
    if (stuck === 'out of the group') return fail(new StopError('stuck', stuck, { topic }))
    if (stuck !== undefined) return fail(new StopError('stuck', 'a partition', { topic, ...stuck }))
  }
}

/** @throws Unavailable when Kafka does not answer */
export const endsOf = (admin: SourceAdmin, topic: string): Promise<Ends> => fetchEnds(admin, topic).catch(asUnavailable)

const asUnavailable = (error: unknown): never => {
  if (error instanceof StopError) throw error
  throw new Unavailable(0)
}

/**
 * Cluster, partitions, configuration and the beginning of the log. @throws StopError for a source that is not the one
 */
export const identify = async (admin: SourceAdmin, identity: Identity): Promise<Ends> => {
  try {
    assertSameSource(identity, await describeSource(admin, identity.topic))
    await checkTopicConfiguration(admin, identity.topic)
    return await fetchEnds(admin, identity.topic)
  } catch (error) {
    return asUnavailable(error)
  }
}
