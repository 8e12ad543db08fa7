/**
 * Detects a stream that is alive and stuck: work waits, Kafka and Elasticsearch both answer, and nothing moves. In:
 * periodically the state; meanwhile progress and disturbances. Out: what is stuck, if anything.
 * Promises: time counts only while things could move. It does not count while Kafka or Elasticsearch does not answer or
 * refuses requests, during a rebalance, while the check of the source reads on, or while this process was frozen.
 */
import type { Health, ReportTrouble } from '../../runtime/index.ts'
import { WATCHDOG_GAP_MS } from '../limits.ts'

export type Standing = {
  /** Whether the client is in its group, and no rebalance runs. */
  readonly inGroup: boolean
  readonly partitions: readonly StandingPartition[]
}

/** The next offset of each stage; `end` as last seen. */
export type StandingPartition = {
  readonly partition: number
  readonly phase: 'positioning' | 'verifying' | 'reading'
  readonly readTo: number
  readonly writtenTo: number
  readonly publishedTo: number
  readonly end: number
}

/** The furthest progress of a partition, and the milliseconds since. */
type Furthest = { readonly publishedTo: number; readonly steps: number; readonly waited: number }

export class Watchdog {
  readonly #stuckMs: number
  readonly #parts = new Map<number, number>()
  #furthest = new Map<number, Furthest>()
  #outOfGroup = 0
  #checkedAt: number | undefined
  #disturbed = false
  #sourceRead = false

  /** @param stuckMs milliseconds without progress, or out of the group, after which a stream is stuck */
  constructor(stuckMs: number) {
    this.#stuckMs = stuckMs
  }

  /** A partition starts, maybe again: its parts are counted from 0. */
  onStarted(partition: number): void {
    this.#parts.set(partition, 0)
  }

  /**
   * Documents were read or written, parts of a batch decompressed, or parts of the log verified. A large batch has
   * many, and each counts.
   */
  onProgress(partition: number, parts: number): void {
    this.#parts.set(partition, (this.#parts.get(partition) ?? 0) + parts)
  }

  /** The check of the source read further. Time does not count for partitions that wait for it. */
  onSourceRead(): void {
    this.#sourceRead = true
  }

  /** Kafka or Elasticsearch did not answer, or refused for now: all waiting starts again at 0. */
  onDisturbed(): void {
    this.#disturbed = true
  }

  /** Returns what is stuck. Call it often: the time since the last call counts as WATCHDOG_GAP_MS at most. */
  check(time: number, { inGroup, partitions }: Standing): StandingPartition | 'out of the group' | undefined {
    const passed = this.#disturbed ? 0 : Math.max(0, Math.min(time - (this.#checkedAt ?? time), WATCHDOG_GAP_MS))
    this.#checkedAt = time
    if (this.#disturbed) this.#forgive()
    this.#disturbed = false
    this.#outOfGroup = inGroup ? 0 : this.#outOfGroup + passed
    // Keep the waiting times of the partitions: a client that fails again and again is stuck too.
    if (!inGroup) return this.#outOfGroup >= this.#stuckMs ? 'out of the group' : undefined

    this.#furthest = new Map(partitions.map(standing => [standing.partition, this.#further(standing, passed)]))
    this.#sourceRead = false
    return partitions.find(({ partition }) => (this.#furthest.get(partition)?.waited ?? 0) >= this.#stuckMs)
  }

  #further({ partition, phase, readTo, writtenTo, publishedTo, end }: StandingPartition, passed: number): Furthest {
    const before = this.#furthest.get(partition)
    const steps = readTo + writtenTo + (this.#parts.get(partition) ?? 0)
    if (before === undefined || publishedTo > before.publishedTo) return { publishedTo, steps, waited: 0 }
    const isWaiting = phase !== 'reading' || Math.max(end, readTo) > publishedTo
    const counted = phase === 'positioning' && this.#sourceRead ? 0 : passed
    if (isWaiting && steps <= before.steps) return { ...before, waited: before.waited + counted }
    return { ...before, steps, waited: 0 }
  }

  #forgive(): void {
    this.#outOfGroup = 0
    for (const [partition, furthest] of this.#furthest) this.#furthest.set(partition, { ...furthest, waited: 0 })
  }
}

/** Reports trouble to the watchdog too. Not for the consumer: `check` gets its state as `inGroup`. */
export const disturbing = (watchdog: Watchdog, health: Health): Health => {
  const notice = (reason: string | undefined): void => {
    if (reason !== undefined) watchdog.onDisturbed()
  }
  return {
    ...health,
    set: (part, reason) => {
      notice(reason)
      health.set(part, reason)
    },
    during: (part, task, slow) => {
      const noticing =
        (report: ReportTrouble): ReportTrouble =>
        reason => {
          notice(reason)
          report(reason)
        }
      return health.during(part, report => task(noticing(report)), slow)
    },
  }
}
