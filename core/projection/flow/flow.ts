/**
 * The flow of one partition, from a batch that was read to the position that lets readers see it:
 *
 *   decode → validate → load → project | write → refresh → publish → commit
 *
 * Its schedule is `#decideAll` and `#publishAll`. The first decides one batch after the other, since each decision
 * needs those before it, and starts to write each. So several writes are under way while the next batch is decided.
 * Each written batch waits for the next refresh, and not for the batches before it. The second publishes the position
 * of searchable batches, in the order of the log. The commit to Kafka comes last, for lag tools only.
 *
 * Three objects do the work. The ledger decides: `PartitionLedger` in `core/ledger/decide/decide-batch.ts`, where
 * `Queue` is, too. The store writes, refreshes and publishes: `PartitionStore` in `partition-store.ts`. The stream is
 * told of the progress: `StreamSide` in `stream-side.ts`. `published` is in `core/store/positions/publish.ts`,
 * `recordHash` in `core/ledger/event/decode.ts`, `timeOfRecord` in `core/ledger/decide/project.ts`. `traceBatch` only
 * makes a span for OpenTelemetry, and `WeightedSemaphore` only bounds bytes. `IncludedTime` (`included-time.ts`) has
 * only the published time: the position decides which records a reader sees.
 *
 * Promises: a position is published only when all documents before it are written, and those that lists search are
 * searchable. Bytes in memory and writes in flight have bounds.
 * Can go wrong: as the three objects. A failure closes the partition and ends the stream, and with it the process; the
 * next start continues at the stored position. `commit` never fails.
 */
import {
  type Batch,
  bytesOfAll,
  type DecidedBatch,
  type PartitionLedger,
  Queue,
  type RawRecord,
  recordHash,
  timeOfRecord,
  traceBatch,
} from '../../ledger/index.ts'
import type { WeightedSemaphore } from '../../runtime/index.ts'
import type { ClockReading, FurtherPosition, PublishedState } from '../../store/index.ts'
import {
  PARTITION_BYTES_IN_FLIGHT,
  PARTITIONS_OF_FULL_SIZE,
  REFRESH_DELAY_MAX_MS,
  WRITES_IN_FLIGHT_PER_PARTITION,
} from '../limits.ts'
import { type BatchWrite, InOrder, type Publishable, type RecordReached } from './in-order.ts'
import { IncludedTime } from './included-time.ts'
import type { PartitionStore } from './partition-store.ts'
import type { StreamSide } from './stream-side.ts'

export type FlowParts = {
  readonly ledger: Pick<PartitionLedger, 'source' | 'decideNext'>
  readonly store: Pick<PartitionStore, 'published' | 'packBatch' | 'refresh'>
  /** Is told what happens; nothing waits for it. */
  readonly stream: Pick<StreamSide, 'onPressure' | 'onDecided' | 'onPublished' | 'onRecordsBehind' | 'commit' | 'fail'>
}

type FlowLimits = {
  /** Limits the bytes of records that are decided or written, over all partitions. */
  readonly budget: WeightedSemaphore
  /** Milliseconds of a monotonic clock. */
  readonly elapsed: () => number
  /** The part of the full size that this partition may take of the memory. */
  readonly share: number
}

/** The share of a partition, if this many partitions of a topic share the memory of this process. */
export const shareOf = (partitions: number): number => Math.min(1, PARTITIONS_OF_FULL_SIZE / partitions)

/** Progress of a partition: the next offset of each stage. */
type PartitionProgress = {
  readonly readTo: number
  readonly writtenTo: number
  readonly publishedTo: number
  readonly end: number
  /** The published time, in milliseconds since 1970; 0 while it is not known. */
  readonly publishedUntil: number
}

type SeenEnds = {
  /** The end for readers. */
  readonly end: number
  /** The end with the records that nobody can read yet; infinite if it is not known. */
  readonly logEnd: number
  /** The published time as it was known when the clocks were read. */
  readonly publishedUntil: number
}

export class PartitionFlow {
  readonly #parts: FlowParts
  readonly #limits: FlowLimits
  readonly #bytesMax: number
  readonly #queue = new Queue()
  readonly #inOrder: InOrder
  /** For the published time only. */
  readonly #included: IncludedTime
  readonly #catchUp: CatchUp
  #bytes = 0
  #full = false
  #readTo: number
  #lastRead: PublishedState['last'] = null
  #lastWritten: RecordReached
  #end: number
  #closed = false
  #deciding: Promise<void> | undefined
  #publishing: Promise<void> | undefined

  constructor(parts: FlowParts, limits: FlowLimits) {
    const { position, last, at } = parts.store.published.current()
    this.#parts = parts
    this.#limits = limits
    this.#bytesMax = PARTITION_BYTES_IN_FLIGHT * limits.share
    this.#inOrder = new InOrder(position)
    this.#included = new IncludedTime(milliseconds => parts.stream.onRecordsBehind(milliseconds))
    this.#catchUp = new CatchUp(position, limits.elapsed)
    this.#readTo = position
    this.#lastWritten = { last, at }
    this.#end = position
  }

  get progress(): PartitionProgress {
    const { writtenTo } = this.#inOrder
    const { position: publishedTo, time: publishedUntil } = this.#parts.store.published.current()
    return { readTo: this.#readTo, writtenTo, publishedTo, end: this.#end, publishedUntil }
  }

  /** The last record taken; null before the first. */
  get lastRead(): PublishedState['last'] {
    return this.#lastRead
  }

  /** Takes a batch that starts at the end of the last one. Refuses any other batch: there is a gap. */
  take(batch: Batch): 'taken' | 'gap' {
    if (this.#closed || batch.from !== this.#readTo) return 'gap'
    this.#readTo = batch.end
    this.#included.sawBatch(batch)
    this.#lastRead = lastOf(batch.records)?.last ?? this.#lastRead
    this.#queue.add(batch)
    this.#addBytes(bytesOfAll(batch.records))
    this.#keepDeciding()
    return 'taken'
  }

  /** The partition ends at `end`; in a replay, the part of it that is read. */
  sawEnd(end: number): void {
    this.#end = Math.max(end, this.#readTo)
  }

  /** The clocks were read, then these ends. Their time is published once the position has reached `logEnd`. */
  sawClocks(clocks: ClockReading, { end, logEnd, publishedUntil }: SeenEnds): void {
    // An end that is not known is no observation: no position would reach it, and those before are still good.
    if (Number.isFinite(logEnd)) this.#included.sawEnd(logEnd, clocks, publishedUntil)
    const { store } = this.#parts
    const { position } = store.published.current()
    if (position < end || this.#closed) return
    const time = this.#included.reachedAt(position)
    if (time !== undefined) void this.#run(() => store.published.advanceTime(time, this.#isTimeAhead()))
  }

  /** Resolves when everything taken is published, or can never be published. */
  async waitUntilIdle(): Promise<void> {
    const busy = (): Promise<void> | undefined => this.#deciding ?? this.#publishing
    for (let task = busy(); task; task = busy()) await task
  }

  /** Stops taking and publishing. The caller aborts the requests under way. */
  close(): void {
    this.#closed = true
    this.#inOrder.close()
    this.#queue.clear()
  }

  async #decideAll(): Promise<void> {
    const { ledger, store } = this.#parts
    for (const batch of this.#undecided()) {
      using begun = await this.#begin(batch)
      if (this.#closed) return
      const decided = await ledger.decideNext(batch)
      this.#onDecided(decided)
      const write = writeOf(decided)
      const send = store.packBatch(decided.documents, write.last?.last ?? null)
      for (const full of this.#writesInFlight()) await full
      if (this.#closed) return
      const done = this.#untilWritten(decided, write, send())
      this.#inOrder.push(write, done, this.#untilSearchable(write, done))
      this.#keepPublishing()
      // The batch keeps its room until it is written.
      const writing = begun.move()
      void done.then(() => writing.dispose())
    }
  }

  /** Resolves when the documents of the batch are written. */
  #untilWritten({ batch, acknowledge }: DecidedBatch, write: BatchWrite, sending: Promise<void>): Promise<void> {
    const bytes = bytesOfAll(batch.records)
    return this.#run(async () => {
      await sending
      acknowledge()
      write.isWritten = true
      this.#addBytes(-bytes)
    })
  }

  /** Resolves when lists find the documents of the batch. */
  #untilSearchable(write: BatchWrite, written: Promise<void>): Promise<void> {
    const { store } = this.#parts
    return this.#run(async () => {
      await written
      if (this.#closed) return
      const writtenTo = Math.max(write.end, this.#inOrder.writtenTo)
      await store.refresh(write.kinds, this.#refreshDelay(writtenTo))
      write.isSearchable = true
    })
  }

  async #publishAll(): Promise<void> {
    const { store, stream } = this.#parts
    let publishing: Promise<void> = Promise.resolve()
    for (const first of this.#inOrder.untilFirstIsSearchable()) {
      await first
      // All batches from the first one on that are searchable without a gap; undefined after `close`.
      const group = this.#inOrder.takeSearchable()
      if (group === undefined) break
      this.#catchUp.reach(group.end)
      // Take the next group while this one is published. `published` writes one position after the other.
      publishing = this.#run(async () => {
        const time = this.#included.reachedAt(group.end)
        const position = this.#positionAfter(group)
        if (time === undefined) await store.published.advance(position)
        else await store.published.advance({ ...position, time }, this.#isTimeAhead())
        stream.onPublished(store.published.current().at)
        if (!this.#closed) void stream.commit(group.end)
      })
    }
    await publishing
  }

  // Look again after each loop ends: a batch that was read or written meanwhile must not wait for the next one.
  #keepDeciding(): void {
    if (this.#deciding === undefined && this.#publishing === undefined) this.#catchUp.begin(this.#inOrder.writtenTo)
    this.#deciding ??= this.#run(() => this.#decideAll()).then(() => {
      this.#deciding = undefined
      if (!this.#queue.isEmpty && !this.#closed) this.#keepDeciding()
    })
  }

  #keepPublishing(): void {
    this.#publishing ??= this.#run(() => this.#publishAll()).then(() => {
      this.#publishing = undefined
      if (!this.#inOrder.isEmpty && !this.#closed) this.#keepPublishing()
    })
  }

  /** Gives a write to wait for while there are too many. */
  *#writesInFlight(): Generator<Promise<void>, void> {
    const full = () => this.#inOrder.firstUnwrittenOf(WRITES_IN_FLIGHT_PER_PARTITION)
    for (let write = full(); write; write = full()) yield write
  }

  *#undecided(): Generator<Batch, void> {
    for (let batch = this.#queue.next(); batch && !this.#closed; batch = this.#queue.next()) yield batch
  }

  /** Waits until there is room for the batch. It takes the room, and has a trace, until both are disposed of. */
  async #begin(batch: Batch): Promise<DisposableStack> {
    const begun = new DisposableStack()
    begun.defer(await this.#limits.budget(bytesOfAll(batch.records)))
    begun.defer(traceBatch(batch, this.#parts.ledger.source))
    return begun
  }

  #onDecided({ rest, counts, parkedCodes, documents }: DecidedBatch): void {
    if (!this.#closed) for (const later of rest) this.#queue.putBack(later)
    this.#parts.stream.onDecided(counts, parkedCodes, documents)
  }

  /**
   * A refresh waits for half of the time until all is written. So refreshes are rare while much is left, when nobody
   * waits for single records, and the less is left, the sooner the next one comes.
   */
  #refreshDelay(writtenTo: number): number {
    return Math.min(REFRESH_DELAY_MAX_MS, this.#catchUp.left(writtenTo, this.#end) / 2)
  }

  #positionAfter(group: Publishable): FurtherPosition {
    this.#lastWritten = group.last ?? this.#lastWritten
    return { position: group.end, ...this.#lastWritten }
  }

  /**
   * Whether the published time is ahead of all clocks: a new time replaces it. This is asked with each new time, also
   * under constant load, when the position never reaches the end.
   */
  #isTimeAhead(): boolean {
    return this.#included.isAhead(this.#parts.store.published.current().time)
  }

  #addBytes(bytes: number): void {
    this.#bytes += bytes
    // Between half of the limit and the limit, keep the state. A closed partition may be another's: never resume it.
    const full = this.#bytes > this.#bytesMax / (this.#full ? 2 : 1)
    if (full === this.#full || this.#closed) return
    this.#full = full
    this.#parts.stream.onPressure(full)
  }

  /** Runs a step. A failure closes and fails the partition, unless it was closed before. */
  async #run(step: () => Promise<void>): Promise<void> {
    try {
      await step()
    } catch (error) {
      if (this.#closed) return
      this.close()
      this.#parts.stream.fail(error)
    }
  }
}

const writeOf = ({ batch, documents }: DecidedBatch): BatchWrite => ({
  end: batch.end,
  last: lastOf(batch.records),
  kinds: new Set(documents.map(({ kind }) => kind)),
  isWritten: false,
  isSearchable: false,
})

/** Identifies the last record by its offset and hash. */
const lastOf = (records: readonly RawRecord[]): RecordReached | undefined => {
  const last = records.at(-1)
  return last && { last: { offset: last.offset, sha256: recordHash(last) }, at: timeOfRecord(last) }
}

type Mark = { readonly position: number; readonly at: number }

/** Estimates how long a partition needs until all its records are written, by the rate of the last two refreshes. */
class CatchUp {
  /** Milliseconds of a monotonic clock. */
  readonly #elapsed: () => number
  #before: Mark
  #last: Mark

  constructor(position: number, elapsed: () => number) {
    this.#elapsed = elapsed
    this.#last = this.#mark(position)
    this.#before = this.#last
  }

  /** The partition begins to work after a rest. */
  begin(position: number): void {
    this.#last = this.#mark(position)
    this.#before = this.#last
  }

  /** Records up to this position are searchable. */
  reach(position: number): void {
    this.#before = this.#last
    this.#last = this.#mark(position)
  }

  /** Returns the milliseconds until all is written, by the present rate; 0 if nothing is left. */
  left(position: number, end: number): number {
    if (end <= position) return 0
    const now = this.#mark(position)
    const passed = Math.max(1, now.at - this.#before.at)
    const records = Math.max(1, now.position - this.#before.position)
    return ((end - position) * passed) / records
  }

  #mark(position: number): Mark {
    return { position, at: this.#elapsed() }
  }
}
