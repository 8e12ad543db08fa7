/**
 * Starts each assigned partition: verifies the whole source, reads our published position, reads the last known
 * record again and compares it, then continues at the position.
 *
 *   positioning ──(nothing read before)──────────────► reading
 *       └──► verifying ──(the last record is the same)──► reading
 *
 * After each new connection to Kafka this is repeated without reading the position: the log may be another one.
 * The consumer reads the record here, because its connections are not those that verify the source.
 *
 * Promises: no record is projected before its source is verified, in all partitions. kafkajs starts at the committed
 * offset; this file seeks to our own position before it resumes the partition.
 */

import type { Batch, RawRecord } from '../../ledger/index.ts'
import {
  assertLastRecord,
  type Consumption,
  type GenerationBody,
  isLastRecord,
  type LastRecord,
} from '../../log/index.ts'
import { StopError } from '../../runtime/index.ts'
import type { PublishedPosition } from '../../store/index.ts'
import type { PartitionFlow } from '../flow/flow.ts'
import type { StreamStatus } from './metrics.ts'
import type { Standing } from './watchdog.ts'

/** @param partitions how many partitions of the topic are assigned to this process */
export type StartFlow = (
  partition: number,
  published: PublishedPosition,
  signal: AbortSignal,
  partitions: number,
) => PartitionFlow

type AssignSteps = {
  readonly topic: string
  readonly consumption: () => Pick<Consumption, 'seek' | 'resume'> | undefined
  /** Returns the published position, once the source is verified and still has that offset. */
  readonly position: (partition: number, signal: AbortSignal) => Promise<PublishedPosition>
  /** Resolves once the source is verified. */
  readonly verify: (signal: AbortSignal) => Promise<void>
  readonly startFlow: StartFlow
  readonly fail: (error: unknown) => void
}

type Assigned = {
  readonly abort: AbortController
  phase: 'positioning' | 'verifying' | 'reading'
  last: { readonly offset: number; readonly sha256: string } | null
  flow: PartitionFlow | undefined
  /** True after the first `reading`, and stays true while the partition is verified again. */
  hasRead: boolean
  /** True after a new connection, until the last record was found again. */
  mustFindLastRecord: boolean
  /** New connections since the assignment. */
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

  /** The partitions that have begun to read, also while they are verified again. */
  flows(): [partition: number, flow: PartitionFlow][] {
    return [...this.#partitions].flatMap(([partition, { flow, hasRead }]) =>
      flow && hasRead ? [[partition, flow]] : [],
    )
  }

  /** Whether the last known record was found over the present connections. */
  isTrusted(partition: number): boolean {
    const assigned = this.#partitions.get(partition)
    return assigned?.hasRead === true && !assigned.mustFindLastRecord
  }

  /** Whether we are in the group and read all assigned partitions, of which there may be none. */
  get isReading(): boolean {
    return this.#joined && [...this.#partitions.values()].every(({ phase }) => phase === 'reading')
  }

  standing(): Standing {
    const partitions = [...this.#partitions].map(([partition, { phase, flow }]) => {
      const { readTo = -1, writtenTo = -1, publishedTo: searchableTo = -1, end = -1 } = flow?.progress ?? {}
      return { partition, phase, readTo, writtenTo, searchableTo, end }
    })
    return { inGroup: this.#joined && !this.#rebalancing, partitions }
  }

  /** A rebalance began. We keep our partitions until it ends. */
  onRebalancing(): void {
    this.#rebalancing = true
  }

  /** Drops all flows first: another process may have owned a partition meanwhile, so our cache may be incomplete. */
  onAssigned(partitions: readonly number[]): void {
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
        hasRead: false,
        mustFindLastRecord: false,
        reconnects: 0,
      }
      this.#partitions.set(partition, assigned)
      this.#carryOut(assigned, () => this.#begin(partition, assigned))
    }
  }

  /**
   * The client has a new connection, maybe to another log. Takes nothing more until the source is verified and the last
   * record is found again. Taken batches continue.
   */
  onReconnected(): void {
    for (const [partition, assigned] of this.#partitions) {
      assigned.mustFindLastRecord = true
      assigned.reconnects++
      const { flow, phase } = assigned
      if (flow === undefined || phase === 'positioning') continue
      assigned.phase = 'positioning'
      this.#carryOut(assigned, async () => {
        await this.#verifySource(assigned)
        assigned.last = flow.lastRead ?? assigned.last
        this.#readOn(partition, assigned, flow)
      })
    }
  }

  onBatch(partition: number, batch: Batch): void {
    const assigned = this.#partitions.get(partition)
    if (assigned === undefined || assigned.phase === 'positioning') return
    try {
      this.#assertNoHole(partition, assigned, batch)
      if (assigned.phase === 'verifying') this.#verify(partition, assigned, batch)
      // A batch from another offset: fetched before a seek, or after the client lost its offset. Seek to ours again.
      else if (assigned.flow?.take(batch) === 'gap') this.#seek(partition, assigned.flow.progress.readTo)
    } catch (error) {
      this.#steps.fail(error)
    }
  }

  /** Ignores a batch from another offset than sought. @throws StopError `records_deleted` */
  #assertNoHole(partition: number, { phase, last, flow }: Assigned, { from, missing }: Batch): void {
    const sought = phase === 'verifying' ? last?.offset : flow?.progress.readTo
    if (missing === undefined || from !== sought) return
    const where = { topic: this.#steps.topic, partition, offset: missing }
    throw new StopError('records_deleted', 'the log continues after a missing offset', where)
  }

  /** The client left the group, for now or for good. */
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
    if (assigned.reconnects > 0) await this.#verifySource(assigned)
    assigned.flow = this.#steps.startFlow(partition, published, signal, this.#partitions.size)
    assigned.last = published.written ?? published.current().last
    this.#readOn(partition, assigned, assigned.flow)
    this.#steps.consumption()?.resume(partition)
  }

  /** Verifies again if a new connection was made meanwhile: there may be another source behind it. */
  async #verifySource(assigned: Assigned): Promise<void> {
    for (let before = -1; before !== assigned.reconnects; ) {
      before = assigned.reconnects
      await this.#steps.verify(assigned.abort.signal)
      assigned.abort.signal.throwIfAborted()
    }
  }

  /** Seeks to the last known record or, if there is none, to the position. */
  #readOn(partition: number, assigned: Assigned, flow: PartitionFlow): void {
    if (assigned.last === null) this.#startReading(assigned)
    else assigned.phase = 'verifying'
    this.#seek(partition, assigned.last?.offset ?? flow.progress.readTo)
  }

  #startReading(assigned: Assigned): void {
    assigned.phase = 'reading'
    assigned.hasRead = true
    assigned.mustFindLastRecord = false
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
    if (last.offset >= flow.progress.readTo) assertAsWritten(this.#steps.topic, partition, last, record)
    assertLastRecord(this.#steps.topic, partition, last, record)
    this.#startReading(assigned)
    this.#seek(partition, flow.progress.readTo)
  }

  #seek(partition: number, offset: number): void {
    this.#steps.consumption()?.seek(partition, offset)
  }
}

/** @throws StopError if documents of another record at this offset, and maybe of later ones, are written */
const assertAsWritten = (topic: string, partition: number, last: LastRecord, record: RawRecord | undefined): void => {
  if (isLastRecord(last, record)) return
  throw writtenChanged(topic, partition, last.offset)
}

export const writtenChanged = (topic: string, partition: number, offset: number): StopError => {
  const what = 'documents are written of another record than the one in the log now'
  return new StopError('source_changed', `${what}; to remove them: npx commission projection adopt`, {
    ...{ topic, partition, offset },
  })
}

/** Returns the progress of the flowing partitions. Logs and metrics call the published position `searchableTo`. */
export const statusOf = (
  assignment: Assignment,
  { generation, topic }: Pick<GenerationBody, 'generation' | 'topic'>,
  committedTo: (partition: number) => number,
): StreamStatus[] =>
  assignment.flows().map(([partition, flow]) => {
    const { farBehind: _, readTo, writtenTo, publishedTo: searchableTo, ...progress } = flow.progress
    return {
      generation,
      topic,
      partition,
      readTo,
      writtenTo,
      searchableTo,
      ...progress,
      committedTo: committedTo(partition),
    }
  })
