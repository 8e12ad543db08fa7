/**
 * Commits to Kafka, for lag tools only: a start uses our own published position. In: published positions. Out: nothing.
 * Only a stop waits for a commit.
 * Promises: at most one commit a second and partition, except at a stop. The next commit makes up for a failed one.
 */

import type { Consumption } from '../../log/index.ts'
import { COMMIT_INTERVAL_MS } from '../limits.ts'

export type Committer = ReturnType<typeof createCommitter>

export const createCommitter = (consumption: () => Pick<Consumption, 'commit'> | undefined, elapsed: () => number) => {
  const committed = new Map<number, number>()
  const triedAt = new Map<number, number>()
  const commit = async (partition: number, position: number): Promise<void> => {
    triedAt.set(partition, elapsed())
    try {
      await consumption()?.commit(partition, position)
      committed.set(partition, position)
    } catch {
      // The next offer tries again.
    }
  }
  return {
    committedTo: (partition: number): number => committed.get(partition) ?? 0,
    /** Resolves when the position is committed, or is not due. Never rejects. */
    offer: async (partition: number, position: number): Promise<void> => {
      const since = elapsed() - (triedAt.get(partition) ?? Number.NEGATIVE_INFINITY)
      if (committed.get(partition) !== position && since >= COMMIT_INTERVAL_MS) await commit(partition, position)
    },
    flush: async (positions: [partition: number, position: number][]): Promise<void> => {
      for (const [partition, position] of positions) await commit(partition, position)
    },
  }
}
