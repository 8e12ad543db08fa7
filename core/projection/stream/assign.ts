/**
 * Starts each assigned partition: verifies the whole source, reads our published position, reads the last known
 * record again and compares it, reads on to the position, which has no record, then continues. A partition has one
 * state:
 *
 *   opening ────(the position is read)────┬─(nothing was read)────► reading ◄──(it is the same)──┐
 *   reconnected ─(the source is verified)─┘                                                      │
 *        ▲                                └─(something was read)──► verifying ───────────────────┘
 *        └──(a new connection, in `verifying` or `reading`)
 *
 *   reading ──(the batch is of a later leader)──► verifying
 *
 * - opening: the source is verified, then the position is read. There is no flow yet, and nothing is taken.
 * - reconnected: there is a new connection to Kafka, maybe to another log. The source is verified again. Nothing is
 *   taken; batches that were taken before continue.
 * - verifying: the consumer seeks to the last known record, or the beginning, and reads on to the position. It does so
 *   itself, because its connections are not those that verify the source.
 * - reading: batches are taken. Only now the position may be trusted to be one of this log.
 *
 * A new connection during `opening` or `reconnected` changes no state: the source is verified once more. An assignment,
 * and the end of the membership in the group, drop all partitions in any state. `#enter` makes each transition.
 *
 * Promises: no record is projected before its source is verified, in all partitions. kafkajs starts at the committed
 * offset; this file seeks to our own position before it resumes the partition.
 */
import type { Batch, RawRecord } from '../../ledger/index.ts'
import {
  assertLastRecord,
  assertNoOther,
  assertNotTruncated,
  type Consumption,
  type Ends,
  endOfPartition,
  type GenerationBody,
  isLastRecord,
  type LastRecord,
  type StreamLog,
  untilKafkaAnswers,
} from '../../log/index.ts'
import { type Retrying, StopError } from '../../runtime/index.ts'
import {
  type Ask,
  assertIntactIndices,
  type Elasticsearch,
  laterOf,
  openPublishedPosition,
  openWritten,
  type PublishedPosition,
  type PublishedTimes,
  retryUntilAborted,
  type Send,
} from '../../store/index.ts'
import type { PartitionFlow } from '../flow/flow.ts'
import type { StreamStatus } from '../progress/metrics.ts'
import type { Standing } from '../progress/watchdog.ts'

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
  readonly openPartition: (partition: number, signal: AbortSignal) => Promise<PublishedPosition>
  /** Resolves once the source is verified. */
  readonly verify: (signal: AbortSignal) => Promise<void>
  /** A partition is verified further, and not yet to its position. */
  readonly onVerified: (partition: number) => void
  readonly startFlow: StartFlow
  readonly fail: (error: unknown) => void
}

/** `last` is the last known record when the state began. `hasRead` stays true after the first `reading`. */
type Started = { readonly flow: PartitionFlow; readonly last: LastRecord | null; readonly hasRead: boolean }

/** `next` is the offset to verify next. */
type State =
  | { readonly name: 'opening' }
  | (Started & { readonly name: 'reconnected' })
  | (Started & { readonly name: 'verifying'; next: number })
  | (Started & { readonly name: 'reading'; readonly hasRead: true })

type Assigned = {
  readonly partition: number
  readonly abort: AbortController
  /** Only `#enter` sets it. */
  state: State
  /** New connections since the assignment. */
  reconnects: number
  /** The epoch of the leader that appended what was read last. */
  epoch: number | undefined
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
    return [...this.#partitions].flatMap(([partition, { state }]) =>
      state.name !== 'opening' && state.hasRead ? [[partition, state.flow]] : [],
    )
  }

  /** Returns the last known record of a partition; null if none is known, or the partition is not opened here. */
  lastKnown(partition: number): LastRecord | null {
    const state = this.#partitions.get(partition)?.state
    return state === undefined || state.name === 'opening' ? null : lastKnownIn(state)
  }

  /** Whether the last known record was found over the present connections. */
  isTrusted(partition: number): boolean {
    return this.#partitions.get(partition)?.state.name === 'reading'
  }

  /** Whether we are in the group and read all assigned partitions, of which there may be none. */
  get isReading(): boolean {
    return this.#joined && [...this.#partitions.values()].every(({ state }) => state.name === 'reading')
  }

  standing(): Standing {
    const partitions = [...this.#partitions].map(([partition, { state }]) => {
      const progress = state.name === 'opening' ? undefined : state.flow.progress
      const { readTo = -1, writtenTo = -1, publishedTo = -1, end = -1 } = progress ?? {}
      return { partition, phase: phaseOf(state), readTo, writtenTo, publishedTo, end }
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
      const assigned: Assigned = {
        partition,
        abort: new AbortController(),
        state: { name: 'opening' },
        reconnects: 0,
        epoch: undefined,
      }
      this.#partitions.set(partition, assigned)
      this.#carryOut(assigned, () => this.#open(assigned))
    }
  }

  /** The client has a new connection, maybe to another log. */
  onReconnected(): void {
    for (const assigned of this.#partitions.values()) {
      assigned.reconnects++
      const { state } = assigned
      if (state.name === 'opening' || state.name === 'reconnected') continue
      this.#enter(assigned, { ...state, name: 'reconnected' })
      this.#carryOut(assigned, async () => {
        await this.#verifySource(assigned)
        this.#readOn(assigned, { ...state, last: lastKnownIn(state) })
      })
    }
  }

  onBatch(partition: number, batch: Batch): void {
    const assigned = this.#partitions.get(partition)
    if (assigned === undefined) return
    const { state } = assigned
    if (state.name === 'opening' || state.name === 'reconnected') return
    try {
      this.#assertNoHole(partition, state, batch)
      if (state.name === 'verifying') this.#compareLastRecord(assigned, state, batch)
      else if (this.#noteLeader(assigned, batch)) this.#readOn(assigned, { ...state, last: lastKnownIn(state) })
      // A batch from another offset: fetched before a seek, or after the client lost its offset. Seek to ours again.
      else if (state.flow.take(batch) === 'gap') this.#seek(partition, state)
    } catch (error) {
      this.#steps.fail(error)
    }
  }

  /**
   * A leader that was elected without all records gives their offsets to others. It needs no new connection. If its log
   * has the same length again at the next fetch, no other check notices. So the last record is read again before the
   * batch.
   * @returns whether the batch is of a later leader than those before it
   */
  #noteLeader(assigned: Assigned, { epoch }: Batch): boolean {
    const before = assigned.epoch ?? epoch
    assigned.epoch = Math.max(epoch ?? -1, before ?? -1)
    return epoch !== undefined && before !== undefined && epoch > before
  }

  /** Ignores a batch from another offset than sought. @throws StopError `records_deleted` */
  #assertNoHole(partition: number, state: Positioned, { from, missing }: Batch): void {
    const sought = soughtIn(state)
    if (missing === undefined || from !== sought) return
    const where = { topic: this.#steps.topic, partition, offset: missing }
    throw new StopError('records_deleted', 'the log continues after a missing offset', where)
  }

  /** The client left the group, for now or for good. */
  close(): void {
    this.#joined = false
    for (const { abort, state } of this.#partitions.values()) {
      if (state.name !== 'opening') state.flow.close()
      abort.abort()
    }
    this.#partitions = new Map()
  }

  /** The one place that changes a state. A state that reads begins at its offset. */
  #enter(assigned: Assigned, state: State): void {
    assigned.state = state
    if (state.name === 'verifying' || state.name === 'reading') this.#seek(assigned.partition, state)
  }

  /** Enters `verifying`, or `reading` if nothing was read. */
  #readOn(assigned: Assigned, { flow, last, hasRead }: Started): void {
    if (last === null && flow.progress.readTo === 0)
      this.#enter(assigned, { name: 'reading', flow, last, hasRead: true })
    else this.#enter(assigned, { name: 'verifying', flow, last, hasRead, next: last?.offset ?? 0 })
  }

  async #open(assigned: Assigned): Promise<void> {
    const { partition, abort } = assigned
    const { signal } = abort
    const published = await this.#steps.openPartition(partition, signal)
    signal.throwIfAborted()
    if (assigned.reconnects > 0) await this.#verifySource(assigned)
    const flow = this.#steps.startFlow(partition, published, signal, this.#partitions.size)
    const last = published.written ?? published.current().last
    this.#readOn(assigned, { flow, last, hasRead: false })
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

  #carryOut({ abort }: Assigned, step: () => Promise<void>): void {
    step().catch(error => {
      if (!abort.signal.aborted) this.#steps.fail(error)
    })
  }

  #compareLastRecord(assigned: Assigned, state: Extract<State, { name: 'verifying' }>, batch: Batch): void {
    const { from, end, records } = batch
    const { partition } = assigned
    const { last, flow, next } = state
    const { topic } = this.#steps
    const { readTo } = flow.progress
    if (from !== next) {
      // Fetched before the seek.
      this.#seek(partition, state)
      return
    }
    const isOfLaterLeader = this.#noteLeader(assigned, batch)
    if (last?.offset === from) {
      const record = records[0]
      if (from >= readTo) assertAsWritten(topic, partition, last, record)
      assertLastRecord(topic, partition, last, record)
    } else if (isOfLaterLeader) {
      this.#readOn(assigned, state)
      return
    }
    assertNoOther(topic, partition, { position: readTo, last }, records)
    if (end < readTo) {
      state.next = end
      this.#steps.onVerified(partition)
    } else this.#enter(assigned, { name: 'reading', flow, last, hasRead: true })
  }

  #seek(partition: number, state: Positioned): void {
    this.#steps.consumption()?.seek(partition, soughtIn(state))
  }
}

/**
 * The later one of the last record taken and the one that was known when the state began. While a partition is read
 * again, there are documents of records ahead of it: the log must have the last of them until they are taken.
 */
const lastKnownIn = ({ flow: { lastRead }, last }: Exclude<State, { name: 'opening' }>): LastRecord | null =>
  lastRead === null ? last : laterOf(last, lastRead)

type Positioned = Extract<State, { name: 'verifying' | 'reading' }>

/** The offset at which a state reads. */
const soughtIn = (state: Positioned): number => (state.name === 'verifying' ? state.next : state.flow.progress.readTo)

/** The public name of a state. */
const phaseOf = ({ name }: State): Standing['partitions'][number]['phase'] =>
  name === 'opening' || name === 'reconnected' ? 'positioning' : name

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
    const { readTo, writtenTo, publishedTo: searchableTo, ...progress } = flow.progress
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

type OpenedStream = { readonly identity: GenerationBody; readonly controlIndex: string; readonly prefix: string }

type OpenSteps = Retrying & {
  readonly streamLog: Pick<StreamLog, 'ends'>
  readonly elasticsearch: Elasticsearch
  /** Verifies the source, in all partitions. */
  readonly verifySource: (signal: AbortSignal) => Promise<void>
  /** Sends the conditional writes of positions. */
  readonly replace: Send
  readonly times: PublishedTimes
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** Opens a partition: verifies its source, then reads its published position, and what is written after it. */
export const openPartition = async (
  partition: number,
  { identity, controlIndex, prefix }: OpenedStream,
  steps: OpenSteps,
  signal: AbortSignal,
): Promise<PublishedPosition> => {
  const { streamLog, elasticsearch, verifySource, times } = steps
  const retried =
    (send: Send): Ask =>
    request =>
      retryUntilAborted('publish', signal, steps, () => send(request, signal))
  const [request, replace] = [retried(elasticsearch.send), retried(steps.replace)]
  // First, so that an added partition stops with `source_changed`, not with `index_missing`.
  await verifySource(signal)
  const store = { request, prefix }
  await assertIntactIndices(identity, store)
  const { generation, topic } = identity
  const published = await openPublishedPosition(partition, { index: controlIndex, generation, request, replace, times })
  const { position } = published.current()
  const { written, writtenFrom } = await openWritten(partition, position, { identity, controlIndex, request })
  // After both: another owner may have written and published past ends that were read before.
  const ends = await untilKafkaAnswers(streamLog.ends, signal, steps)
  assertNotTruncated(topic, partition, position, ends)
  if (written !== null) assertHasWritten(topic, partition, written.offset, ends)
  return { ...published, written, writtenFrom }
}

export const assertHasWritten = (topic: string, partition: number, offset: number, ends: Ends): void => {
  const end = endOfPartition(partition, ends)
  if (offset < end) return
  const what = 'the partition ends before records whose documents are written'
  throw new StopError('records_deleted', `${what}; to remove them: npx commission projection adopt`, {
    ...{ topic, partition, offset, end },
  })
}
