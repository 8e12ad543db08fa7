/**
 * The stream side of one partition: it is told of the progress. In: what happened in the flow. Out: the consumer is
 * paused and resumed, positions are committed, metrics count, and the watchdog sees that the partition moves.
 * Promises: nothing waits for it. Its last metrics are forgotten with the partition.
 */
import type { ParkCode } from '../../../schemas/errors.ts'
import type { DecidedDocument, ProjectedBatch } from '../../ledger/index.ts'
import type { Consumption } from '../../log/index.ts'
import type { BalanceKeeper } from '../balances/keep-balances.ts'
import { COMMIT_INTERVAL_MS } from '../limits.ts'
import type { StreamMetrics } from '../progress/metrics.ts'
import type { Watchdog } from '../progress/watchdog.ts'

type Parts = {
  readonly topic: string
  readonly partition: number
  /** Undefined before the stream has joined its group, and while it stops. */
  readonly consumption: () => Pick<Consumption, 'pause' | 'resume'> | undefined
  readonly committer: Pick<Committer, 'offer'>
  readonly watchdog: Pick<Watchdog, 'onStarted' | 'onProgress' | 'onDisturbed'>
  readonly metrics: Pick<
    StreamMetrics,
    'countProjected' | 'countWritten' | 'observePublished' | 'setRecordsBehind' | 'forgetRecordsBehind'
  >
  /** Undefined if no balances are made. */
  readonly balances: () => Pick<BalanceKeeper, 'countChanges'> | undefined
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly fail: (error: unknown) => void
}

export class StreamSide {
  readonly #parts: Parts

  /** @param signal of the partition */
  constructor(parts: Parts, signal: AbortSignal) {
    const { topic, partition, watchdog, metrics } = parts
    this.#parts = parts
    watchdog.onStarted(partition)
    signal.addEventListener('abort', () => metrics.forgetRecordsBehind(topic, partition))
  }

  /** True above the limit of bytes in flight, and false below half of it. */
  onPressure(full: boolean): void {
    const { consumption, partition } = this.#parts
    if (full) consumption()?.pause(partition)
    else consumption()?.resume(partition)
  }

  onRead(documents: number): void {
    this.#parts.watchdog.onProgress(this.#parts.partition, documents)
  }

  /** Decisions wait for their turn under a limited rate. */
  onPaced(): void {
    // Other partitions may wait for this one's share of the budget. So all of them count as waiting.
    this.#parts.watchdog.onDisturbed()
  }

  onDecided(
    counts: ProjectedBatch['counts'],
    parkedCodes: readonly ParkCode[],
    documents: readonly DecidedDocument[],
  ): void {
    const { metrics, balances } = this.#parts
    metrics.countProjected(counts, parkedCodes)
    balances()?.countChanges(documents)
  }

  onWritten(outcome: 'written' | 'stale' | 'retried', documents: number): void {
    const { metrics, watchdog, partition } = this.#parts
    metrics.countWritten(outcome, documents)
    if (outcome === 'retried') watchdog.onDisturbed()
    else watchdog.onProgress(partition, documents)
  }

  /** @param at the time of the last published record */
  onPublished(at: number): void {
    const { metrics, now } = this.#parts
    metrics.observePublished(Math.max(0, now() - at) / 1000)
  }

  /** The broker's clock is behind by these milliseconds; 0 when it agrees again. */
  onRecordsBehind(milliseconds: number): void {
    const { metrics, topic, partition } = this.#parts
    metrics.setRecordsBehind(topic, partition, milliseconds)
  }

  /** Resolves when the position is committed, or is not due. */
  commit(position: number): Promise<void> {
    return this.#parts.committer.offer(this.#parts.partition, position)
  }

  /** The partition stops with an error that cannot be retried. */
  fail(error: unknown): void {
    this.#parts.fail(error)
  }
}

export type Committer = ReturnType<typeof createCommitter>

/**
 * Commits to Kafka, for lag tools only: a start uses our own published position. Only a stop waits for a commit.
 * Promises: at most one commit a second and partition, except at a stop. The next commit makes up for a failed one.
 */
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
