/**
 * The flow of one partition, from a batch that was read to the position that lets readers see it:
 *
 *   decode → validate → load → project | write → refresh → publish → commit
 *
 * The first half (`decide.ts`) decides one batch after the other, since each decision needs those before it. To decide
 * a batch, it assesses each record alone (`assess`: decode, validate), loads the documents that the rules may read, and
 * projects the records in order (`project`: the rules decide each record, given those before).
 *
 * The second half (`publish-in-order.ts`) overlaps: several writes are under way while the next batch is decided. But
 * only written documents are made searchable, and only searchable ones are published. The commit to Kafka comes last,
 * for lag tools only. This file joins the two: it queues batches, limits the bytes and the writes in flight, and
 * reports progress.
 */
import type { ParkCode } from '../../../schemas/errors.ts'
import {
  type Batch,
  bytesOfAll,
  Cache,
  type DecidedBatch,
  type DecideSteps,
  decideBatch,
  type ProjectedBatch,
  Queue,
  type RawRecord,
  recordHash,
  type SerializedChange,
  timeOfRecord,
  traceBatch,
} from '../../ledger/index.ts'
import type { WeightedSemaphore } from '../../runtime/index.ts'
import type { ClockReading, PublishedState } from '../../store/index.ts'
import { PARTITION_BYTES_IN_FLIGHT, PARTITIONS_OF_FULL_SIZE, WRITES_IN_FLIGHT_PER_PARTITION } from '../limits.ts'
import { IncludedTime } from './included-time.ts'
import { type BatchWrite, InOrderPublisher, type PublishInOrderSteps } from './publish-in-order.ts'

export type FlowSteps = DecideSteps &
  PublishInOrderSteps & {
    /** Limits the bytes of records that are decided or written, over all partitions. */
    readonly budget: WeightedSemaphore
    /**
     * Serializes documents during the call, and returns the function that writes them later.
     * @param last the last record of their batch, which is written with them
     */
    readonly write: (documents: readonly SerializedChange[], last: PublishedState['last']) => () => Promise<void>
    /** Lets the next refresh begin, if it is delayed because the partitions were far behind. */
    readonly endRefreshDelay: () => void
    /** Called with true above the limit of bytes in flight, and with false below half of it. */
    readonly onPressure: (full: boolean) => void
    readonly onProjected: (counts: ProjectedBatch['counts'], parkedCodes: readonly ParkCode[]) => void
    readonly onRecordsBehind: (milliseconds: number) => void
    /** Called with an error that cannot be retried. The partition stops. */
    readonly fail: (error: unknown) => void
  }

/** Progress of a partition: the next offset of each stage. */
type PartitionProgress = {
  readonly readTo: number
  readonly writtenTo: number
  readonly publishedTo: number
  readonly end: number
  /** The published time, in milliseconds since 1970; 0 before the first one. */
  readonly publishedUntil: number
  readonly farBehind: boolean
}

export class PartitionFlow {
  readonly #steps: FlowSteps
  readonly #farBehindRecords: number
  readonly #cache: Cache
  readonly #bytesMax: number
  readonly #read = new Queue()
  readonly #included: IncludedTime
  readonly #publisher: InOrderPublisher
  #bytes = 0
  #full = false
  #readTo: number
  #lastRead: PublishedState['last'] = null
  #at: number
  #end: number
  #closed = false
  #deciding: Promise<void> | undefined

  /** @param partitions how many partitions of the topic share the memory of this process */
  constructor(steps: FlowSteps, farBehindRecords: number, partitions: number) {
    const share = Math.min(1, PARTITIONS_OF_FULL_SIZE / partitions)
    const { position, at } = steps.published.current()
    this.#steps = steps
    this.#included = new IncludedTime(steps.onRecordsBehind)
    this.#publisher = new InOrderPublisher({
      steps,
      included: this.#included,
      isFarBehind: () => this.progress.farBehind,
      run: step => this.#run(step),
    })
    this.#cache = new Cache({ fromFirstRecord: position === 0, share })
    this.#bytesMax = PARTITION_BYTES_IN_FLIGHT * share
    this.#farBehindRecords = farBehindRecords
    this.#readTo = position
    this.#end = position
    this.#at = at
  }

  get progress(): PartitionProgress {
    const { writtenTo } = this.#publisher
    const { position: publishedTo, time: publishedUntil } = this.#steps.published.current()
    const farBehind = this.#end - writtenTo > this.#farBehindRecords
    return { readTo: this.#readTo, writtenTo, publishedTo, end: this.#end, publishedUntil, farBehind }
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
    this.#lastRead = lastOf(batch.records) ?? this.#lastRead
    this.#read.add(batch)
    this.#addBytes(bytesOfAll(batch.records))
    this.#keepDeciding()
    return 'taken'
  }

  /** The partition ended at `end` when the clocks were read. Without clocks, no time can be published. */
  sawEnd(end: number, clocks: ClockReading | undefined): void {
    this.#end = Math.max(end, this.#readTo)
    if (clocks === undefined) return
    this.#included.sawEnd(end, clocks)
    if (this.#steps.published.current().position >= end && !this.#closed) this.#publisher.publishTime()
  }

  /** Resolves when everything taken is published, or can never be published. */
  async waitUntilIdle(): Promise<void> {
    const busy = (): Promise<void> | undefined => this.#deciding ?? this.#publisher.publishing
    for (let task = busy(); task; task = busy()) await task
  }

  /** Stops taking and publishing. The caller aborts the requests under way. */
  close(): void {
    this.#closed = true
    this.#publisher.close()
    this.#read.clear()
  }

  // Look again after the loop ends: a batch that arrived meanwhile must not wait for the next one.
  #keepDeciding(): void {
    this.#deciding ??= this.#run(() => this.#decideAll()).then(() => {
      this.#deciding = undefined
      if (!this.#read.isEmpty && !this.#closed) this.#keepDeciding()
    })
  }

  async #decideAll(): Promise<void> {
    for (let batch = this.#read.next(); batch && !this.#closed; batch = this.#read.next()) {
      const release = await this.#steps.budget(bytesOfAll(batch.records))
      const endSpan = traceBatch(batch, this.#steps.source)
      const end = (): void => {
        endSpan()
        release()
      }
      const write = await this.#decideAndWrite(batch).catch((error: unknown) => {
        end()
        throw error
      })
      if (write === undefined) return end()
      void write.done.then(end)
    }
  }

  /** Returns the write under way; undefined if the partition was closed meanwhile. */
  async #decideAndWrite(taken: Batch): Promise<BatchWrite | undefined> {
    if (this.#closed) return undefined
    const decided = await decideBatch(taken, this.#cache, this.#steps)
    if (!this.#closed) for (const later of decided.rest) this.#read.putBack(later)
    const acknowledge = this.#cache.addDecided(decided.documents)
    this.#steps.onProjected(decided.counts, decided.parkedCodes)
    const last = lastOf(decided.batch.records)
    const write = this.#steps.write(decided.documents, last)
    // A failed write closes the flow, which ends this loop.
    while (!this.#closed && this.#publisher.unfinished().length >= WRITES_IN_FLIGHT_PER_PARTITION) {
      await this.#publisher.unfinished()[0]?.done
    }
    if (this.#closed) return undefined
    return this.#startWriting(decided, last, write, acknowledge)
  }

  #startWriting(
    decided: DecidedBatch,
    last: PublishedState['last'],
    write: () => Promise<void>,
    acknowledge: () => void,
  ): BatchWrite {
    const { end, records } = decided.batch
    const record = records.at(-1)
    if (record !== undefined) this.#at = timeOfRecord(record)
    const bytes = bytesOfAll(records)
    const writing = write()
    const batchWrite: BatchWrite = {
      end,
      last,
      at: this.#at,
      kinds: new Set(decided.documents.map(({ kind }) => kind)),
      done: this.#run(async () => {
        await writing
        acknowledge()
        batchWrite.isDone = true
        this.#addBytes(-bytes)
        // Few records are left to write: the next refresh need not be delayed.
        if (this.#end - end <= this.#farBehindRecords) this.#steps.endRefreshDelay()
      }),
      isDone: false,
    }
    this.#publisher.add(batchWrite)
    return batchWrite
  }

  #addBytes(bytes: number): void {
    this.#bytes += bytes
    // Between half of the limit and the limit, keep the state. A closed partition may be another's: never resume it.
    const full = this.#bytes > this.#bytesMax / (this.#full ? 2 : 1)
    if (full === this.#full || this.#closed) return
    this.#full = full
    this.#steps.onPressure(full)
  }

  /** Runs a step. A failure closes and fails the partition, unless it was closed before. */
  async #run(step: () => Promise<void>): Promise<void> {
    try {
      await step()
    } catch (error) {
      if (this.#closed) return
      this.close()
      this.#steps.fail(error)
    }
  }
}

/** Identifies the last record by its offset and hash. */
const lastOf = (records: readonly RawRecord[]): PublishedState['last'] => {
  const last = records.at(-1)
  return last === undefined ? null : { offset: last.offset, sha256: recordHash(last) }
}
