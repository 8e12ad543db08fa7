/**
 * Checks that each partition has an owner of this installation. In: periodically, the group. Out: a reason not to be
 * ready, and a metric.
 * Promises: the reason comes only after OWNERS_GRACE_MS, and so not during a start or a rebalance. Every projector of
 * the installation reports such a partition. The metric changes at once, and counts all partitions during a rebalance.
 */

import { describeGroup, type GroupAdmin, type InstallationIdentity } from '../../log/index.ts'
import type { Health, RetryOptions } from '../../runtime/index.ts'
import { OWNERS_GRACE_MS, OWNERS_INTERVAL_MS } from '../limits.ts'

type OwnersWatched = {
  readonly groupId: string
  readonly generation: string
  readonly topic: string
  readonly partitions: number
  readonly installation: InstallationIdentity
}

type OwnersContext = {
  readonly admin: GroupAdmin
  /** Milliseconds on a monotonic clock. */
  readonly elapsed: () => number
  readonly retryOptions: Pick<RetryOptions, 'sleep'>
  readonly health: Pick<Health, 'set'>
  /** Called with the number of partitions without an owner. */
  readonly onUnowned: (partitions: number) => void
}

export const watchOwners = async (
  { groupId, generation, topic, partitions, installation }: OwnersWatched,
  { admin, elapsed, retryOptions, health, onUnowned }: OwnersContext,
  signal: AbortSignal,
): Promise<void> => {
  const all = Array.from({ length: partitions }, (_, partition) => partition)
  let since: number | undefined
  for (;;) {
    await retryOptions.sleep(OWNERS_INTERVAL_MS, signal).catch(() => undefined)
    if (signal.aborted) return
    // Other parts report that Kafka does not answer.
    const group = await describeGroup(admin, groupId, topic, installation).catch(() => undefined)
    if (group === undefined || signal.aborted) continue
    const unowned = group.isStable ? all.filter(partition => !group.owned.has(partition)) : all
    onUnowned(unowned.length)
    since = unowned.length === 0 ? undefined : (since ?? elapsed())
    const isLate = since !== undefined && elapsed() - since >= OWNERS_GRACE_MS
    const others = group.foreign.length > 0 ? `; projectors of ${group.foreign.join(', ')} are in the group` : ''
    const reason = `no projector of ${installation.prefix} owns partitions ${unowned.join(', ')}${others}`
    health.set({ generation, name: 'owners' }, isLate ? reason : undefined)
  }
}
