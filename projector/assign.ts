/**
 * From an assignment to partitions that flow. For each partition that the group gives us: read our own published position,
 * identify the source, read the last record again that we know and compare it, then go on exactly there.
 *
 *   positioned ──(nothing read before)──────────────► reading
 *       └──► verifying ──(the last record is the same)──► reading
 *
 * Promises: no record is projected before its source is identified; never Kafka's committed offset, always our own position.
 */
import type { Consumption } from './consume.ts'
import { StopError } from './failures.ts'
import type { PartitionFlow } from './flow.ts'
import type { PublishedPosition } from './publish.ts'
import type { Batch } from './queue.ts'
import { hashOf } from './source.ts'
import type { Standing } from './watchdog.ts'

export type AssignSteps = {
  readonly topic: string
  readonly consumption: () => Pick<Consumption, 'seek' | 'resume'> | undefined
  /** The published position, once the source is known to be the right one and to hold it. */
  readonly position: (partition: number, signal: AbortSignal) => Promise<PublishedPosition>
  readonly startFlow: (partition: number, published: PublishedPosition, signal: AbortSignal) => PartitionFlow
  readonly fail: (error: unknown) => void
}

type Assigned = {
  readonly abort: AbortController
  phase: 'positioning' | 'verifying' | 'reading'
  last: { readonly offset: number; readonly sha256: string } | null
  flow: PartitionFlow | undefined
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
    return [...this.#partitions].flatMap(([partition, { flow, phase }]) =>
      flow && phase === 'reading' ? [[partition, flow]] : [],
    )
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
      const assigned: Assigned = { abort, phase: 'positioning', last: null, flow: undefined }
      this.#partitions.set(partition, assigned)
      this.#begin(partition, assigned).catch(error => {
        if (!abort.signal.aborted) this.#steps.fail(error)
      })
    }
  }

  batch(partition: number, batch: Batch): void {
    const assigned = this.#partitions.get(partition)
    if (assigned === undefined || assigned.phase === 'positioning') return
    try {
      if (assigned.phase === 'verifying') this.#verify(partition, assigned, batch)
      // A batch from elsewhere: fetched before a seek, or after the client lost its place. It is read again from ours.
      else if (assigned.flow?.take(batch) === 'gap') this.#seek(partition, assigned.flow.progress.readTo)
    } catch (error) {
      this.#steps.fail(error)
    }
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
    const { position, last } = published.current()
    assigned.flow = this.#steps.startFlow(partition, published, signal)
    assigned.last = last
    assigned.phase = last === null ? 'reading' : 'verifying'
    this.#seek(partition, last?.offset ?? position)
    this.#steps.consumption()?.resume(partition)
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
    assigned.phase = 'reading'
    this.#seek(partition, flow.progress.readTo)
  }

  #seek(partition: number, offset: number): void {
    this.#steps.consumption()?.seek(partition, offset)
  }
}
