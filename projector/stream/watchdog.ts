/**
 * Notices that a stream is alive and stuck: work waits, Kafka and Elasticsearch both answer, and nothing moves.
 * In: now and then how things stand, and meanwhile what moved and what was in the way. Out: what is stuck, if anything
 * is.
 * Promises: time counts only while things could move. It does not while Kafka or Elasticsearch fails to answer or
 * refuses for now, nor while the group shares its partitions out, nor while this process itself was kept from running.
 */
import type { Health, Tell } from '../health.ts'
import { WATCHDOG_GAP_MS } from '../limits.ts'

/** How things stand. */
export type Standing = {
  /** Whether the client is in its group, and the group has shared out its partitions. */
  readonly inGroup: boolean
  readonly partitions: readonly StandingPartition[]
}

/** Next offsets, each named for what has reached it; `end` as it was last seen. */
export type StandingPartition = {
  readonly partition: number
  readonly phase: string
  readonly readTo: number
  readonly writtenTo: number
  readonly searchableTo: number
  readonly end: number
}

/** How far a partition has been at most, and for how long it has not been further. */
type Furthest = { readonly searchableTo: number; readonly steps: number; readonly waited: number }

export class Watchdog {
  readonly #stuckMs: number
  readonly #documents = new Map<number, number>()
  #furthest = new Map<number, Furthest>()
  #outOfGroup = 0
  #lookedAt: number | undefined
  #disturbed = false

  /**
   * @param stuckMs milliseconds without any progress after which a partition is stuck, and the client out of its group
   */
  constructor(stuckMs: number) {
    this.#stuckMs = stuckMs
  }

  /** A partition begins, maybe again: what moves in it is counted anew. */
  began(partition: number): void {
    this.#documents.set(partition, 0)
  }

  /** So many documents of a partition were read, or are as they must be: a large batch takes many requests. */
  moved(partition: number, documents: number): void {
    this.#documents.set(partition, (this.#documents.get(partition) ?? 0) + documents)
  }

  /** Kafka or Elasticsearch did not answer, or refused for now: everything may take as long again. */
  disturbed(): void {
    this.#disturbed = true
  }

  /** To be called often: what lies between two looks counts for little, however long it was. */
  look(time: number, { inGroup, partitions }: Standing): StandingPartition | 'out of the group' | undefined {
    const passed = this.#disturbed ? 0 : Math.max(0, Math.min(time - (this.#lookedAt ?? time), WATCHDOG_GAP_MS))
    this.#lookedAt = time
    if (this.#disturbed) this.#forgive()
    this.#disturbed = false
    this.#outOfGroup = inGroup ? 0 : this.#outOfGroup + passed
    // How long the partitions waited before is kept: a client that loses its way again and again is stuck as well.
    if (!inGroup) return this.#outOfGroup >= this.#stuckMs ? 'out of the group' : undefined

    this.#furthest = new Map(partitions.map(standing => [standing.partition, this.#further(standing, passed)]))
    return partitions.find(({ partition }) => (this.#furthest.get(partition)?.waited ?? 0) >= this.#stuckMs)
  }

  #further({ partition, phase, readTo, writtenTo, searchableTo, end }: StandingPartition, passed: number): Furthest {
    const before = this.#furthest.get(partition)
    const steps = readTo + writtenTo + (this.#documents.get(partition) ?? 0)
    if (before === undefined || searchableTo > before.searchableTo) return { searchableTo, steps, waited: 0 }
    const isWaiting = phase !== 'reading' || Math.max(end, readTo) > searchableTo
    if (isWaiting && steps <= before.steps) return { ...before, waited: before.waited + passed }
    return { ...before, steps, waited: 0 }
  }

  #forgive(): void {
    this.#outOfGroup = 0
    for (const [partition, furthest] of this.#furthest) this.#furthest.set(partition, { ...furthest, waited: 0 })
  }
}

/**
 * What is in the way of Kafka or Elasticsearch, told to the watchdog too; that the client is out of its group it knows.
 */
export const disturbing = (watchdog: Watchdog, health: Health): Health => {
  const notice = (part: string, reason: string | undefined): void => {
    if (reason !== undefined && !part.endsWith(' consumer')) watchdog.disturbed()
  }
  return {
    ...health,
    set: (part, reason) => {
      notice(part, reason)
      health.set(part, reason)
    },
    during: (part, task, slow) => {
      const noticing =
        (tell: Tell): Tell =>
        reason => {
          notice(part, reason)
          tell(reason)
        }
      return health.during(part, tell => task(noticing(tell)), slow)
    },
  }
}
