/**
 * From an assignment to partitions that flow. For each partition that the group gives us: read our own published
 * position, identify the source, read the last record again that we know and compare it, then go on exactly there.
 *
 *   positioned ──(nothing read before)──────────────► reading
 *       └──► verifying ──(the last record is the same)──► reading
 *
 * With every new connection to Kafka, and now and then, all of this begins again, but for our position: there may be
 * another log by now.
 *
 * Promises: no record is projected before its source is identified; never Kafka's committed offset, always our own
 * position.
 */

import { StopError } from '../failures.ts'
import type { PartitionFlow } from '../flow/flow.ts'
import type { PublishedPosition } from '../flow/publish.ts'
import type { Batch } from '../flow/queue.ts'
import { hashOf, type Identity } from '../kafka/source.ts'
import { VERIFYING_TRUSTED_MS } from '../limits.ts'
import type { Consumption } from './consume.ts'
import type { StreamStatus } from './metrics.ts'
import type { Standing } from './watchdog.ts'

export type AssignSteps = {
  readonly topic: string
  readonly consumption: () => Pick<Consumption, 'seek' | 'resume'> | undefined
  /** The published position, once the source is known to be the right one and to hold it. */
  readonly position: (partition: number, signal: AbortSignal) => Promise<PublishedPosition>
  /** Resolves once the source is known to be the right one. */
  readonly identify: (signal: AbortSignal) => Promise<void>
  readonly startFlow: (partition: number, published: PublishedPosition, signal: AbortSignal) => PartitionFlow
  readonly fail: (error: unknown) => void
  /** Milliseconds, on any clock. */
  readonly now: () => number
}

type Assigned = {
  readonly abort: AbortController
  phase: 'positioning' | 'verifying' | 'reading'
  last: { readonly offset: number; readonly sha256: string } | null
  flow: PartitionFlow | undefined
  /** Whether it ever got to reading: it flows from then on, also while nothing more is taken. */
  verified: boolean
  /** Whether the connection is a new one, over which the last record was not found yet. */
  suspect: boolean
  /** Since when it has been verified again, while it is. */
  verifyingSince: number
  /** How many new connections there were since it was assigned. */
  reconnects: number
}

export class Assignment {
  readonly #steps: AssignSteps
  #partitions = new Map<number, Assigned>()
  #joined = false
  #rebalancing = false

  constructor(steps: AssignSteps) {
    this.#steps = steps
  }

  /** The partitions that flow now. */
  flows(): [partition: number, flow: PartitionFlow][] {
    return [...this.#partitions].flatMap(([partition, { flow, verified }]) =>
      flow && verified ? [[partition, flow]] : [],
    )
  }

  /**
   * Whether nothing speaks against its source being the right one. Verified now and then, it is trusted while that may
   * take.
   */
  isTrusted(partition: number): boolean {
    const assigned = this.#partitions.get(partition)
    if (!assigned?.verified || assigned.suspect) return false
    return assigned.phase === 'reading' || Math.abs(this.#steps.now() - assigned.verifyingSince) < VERIFYING_TRUSTED_MS
  }

  /** Whether we are in the group and read all that is ours; nothing may be ours. */
  get isReading(): boolean {
    return this.#joined && [...this.#partitions.values()].every(({ phase }) => phase === 'reading')
  }

  /** How things stand, for the watchdog. */
  standing(): Standing {
    const partitions = [...this.#partitions].map(([partition, { phase, flow }]) => {
      const { readTo = -1, writtenTo = -1, searchableTo = -1, end = -1 } = flow?.progress ?? {}
      return { partition, phase, readTo, writtenTo, searchableTo, end }
    })
    return { inGroup: this.#joined && !this.#rebalancing, partitions }
  }

  /** The group shares its partitions out again; what is ours is ours until then. */
  rebalancing(): void {
    this.#rebalancing = true
  }

  /** What was ours before ends here: another process may own it now, and what we know of it may no longer be all. */
  assigned(partitions: readonly number[]): void {
    this.close()
    this.#joined = true
    this.#rebalancing = false
    for (const partition of partitions) {
      const abort = new AbortController()
      const assigned: Assigned = {
        abort,
        phase: 'positioning',
        last: null,
        flow: undefined,
        verified: false,
        suspect: false,
        verifyingSince: 0,
        reconnects: 0,
      }
      this.#partitions.set(partition, assigned)
      this.#carryOut(assigned, () => this.#begin(partition, assigned))
    }
  }

  /** The client has a new connection: behind it there may be another log. */
  reconnected(): void {
    for (const assigned of this.#partitions.values()) {
      assigned.suspect = true
      assigned.reconnects++
    }
    this.verifyAgain()
  }

  /**
   * What was taken goes its way; nothing more is taken until its source is identified and the last record found again.
   */
  verifyAgain(): void {
    for (const [partition, assigned] of this.#partitions) {
      const { flow, phase } = assigned
      if (flow === undefined || phase === 'positioning') continue
      if (phase === 'reading') assigned.verifyingSince = this.#steps.now()
      assigned.phase = 'positioning'
      this.#carryOut(assigned, async () => {
        await this.#identify(assigned)
        assigned.last = flow.lastRead ?? assigned.last
        this.#readOn(partition, assigned, flow)
      })
    }
  }

  batch(partition: number, batch: Batch): void {
    const assigned = this.#partitions.get(partition)
    if (assigned === undefined || assigned.phase === 'positioning') return
    try {
      this.#assertNoHole(partition, assigned, batch)
      if (assigned.phase === 'verifying') this.#verify(partition, assigned, batch)
      // A batch from elsewhere: fetched before a seek, or after the client lost its place. It is read again from ours.
      else if (assigned.flow?.take(batch) === 'gap') this.#seek(partition, assigned.flow.progress.readTo)
    } catch (error) {
      this.#steps.fail(error)
    }
  }

  /** A batch from elsewhere than was sought says nothing. @throws StopError `records_deleted` */
  #assertNoHole(partition: number, { phase, last, flow }: Assigned, { from, missing }: Batch): void {
    const sought = phase === 'verifying' ? last?.offset : flow?.progress.readTo
    if (missing === undefined || from !== sought) return
    const where = { topic: this.#steps.topic, partition, offset: missing }
    throw new StopError('records_deleted', 'the log goes on after an offset that it no longer has', where)
  }

  /** The client is out of the group, for now or for good. */
  close(): void {
    this.#joined = false
    for (const { abort, flow } of this.#partitions.values()) {
      flow?.close()
      abort.abort()
    }
    this.#partitions = new Map()
  }

  async #begin(partition: number, assigned: Assigned): Promise<void> {
    const { signal } = assigned.abort
    const published = await this.#steps.position(partition, signal)
    signal.throwIfAborted()
    if (assigned.reconnects > 0) await this.#identify(assigned)
    assigned.flow = this.#steps.startFlow(partition, published, signal)
    assigned.last = published.current().last
    this.#readOn(partition, assigned, assigned.flow)
    this.#steps.consumption()?.resume(partition)
  }

  /** What is identified while a new connection is made may not be what lies behind that one. */
  async #identify(assigned: Assigned): Promise<void> {
    for (let before = -1; before !== assigned.reconnects; ) {
      before = assigned.reconnects
      await this.#steps.identify(assigned.abort.signal)
      assigned.abort.signal.throwIfAborted()
    }
  }

  /** From the last record that we know, or from where we are when there is none. */
  #readOn(partition: number, assigned: Assigned, flow: PartitionFlow): void {
    if (assigned.last === null) this.#startReading(assigned)
    else assigned.phase = 'verifying'
    this.#seek(partition, assigned.last?.offset ?? flow.progress.readTo)
  }

  #startReading(assigned: Assigned): void {
    assigned.phase = 'reading'
    assigned.verified = true
    assigned.suspect = false
  }

  #carryOut({ abort }: Assigned, step: () => Promise<void>): void {
    step().catch(error => {
      if (!abort.signal.aborted) this.#steps.fail(error)
    })
  }

  #verify(partition: number, assigned: Assigned, { from, records }: Batch): void {
    const { last, flow } = assigned
    if (last === null || flow === undefined) return
    if (from !== last.offset) {
      // Fetched before the seek.
      this.#seek(partition, last.offset)
      return
    }
    const record = records[0]
    if (record?.offset !== last.offset || hashOf(record) !== last.sha256) {
      throw new StopError('source_changed', 'the last record read is not the one that is there now', {
        topic: this.#steps.topic,
        partition,
        offset: last.offset,
      })
    }
    this.#startReading(assigned)
    this.#seek(partition, flow.progress.readTo)
  }

  #seek(partition: number, offset: number): void {
    this.#steps.consumption()?.seek(partition, offset)
  }
}

/** How far the partitions that flow are. */
export const statusOf = (
  assignment: Assignment,
  { generation, topic }: Pick<Identity, 'generation' | 'topic'>,
  committedTo: (partition: number) => number,
): StreamStatus[] =>
  assignment.flows().map(([partition, flow]) => {
    const { readTo, writtenTo, searchableTo, end } = flow.progress
    return { generation, topic, partition, readTo, writtenTo, searchableTo, committedTo: committedTo(partition), end }
  })
