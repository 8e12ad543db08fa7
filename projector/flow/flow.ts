/**
 * The flow of a record, from the batch it was read in to the position that lets readers see it, for one partition:
 *
 *   decode → validate → load → project | write → refresh → publish → commit
 *
 * The first half decides one batch after the other: each decision needs those before it. The second half overlaps:
 * several writes are under way while the next batch is decided. It keeps the order: only what is written can be made
 * searchable, only what is searchable may be published. Kafka is told last, for lag tools only.
 */
import type { ParkCode } from '../../schemas/errors.ts'
import type { Reading } from '../elasticsearch/clocks.ts'
import type { RawRecord } from '../event/raw-record.ts'
import type { Source } from '../event/validate.ts'
import { hashOf } from '../kafka/source.ts'
import { PARTITION_BYTES_IN_FLIGHT, WRITES_IN_FLIGHT_PER_PARTITION } from '../limits.ts'
import type { IndexKind } from '../rules/state.ts'
import { type AssessSteps, assessOnly } from './assess.ts'
import { Cache } from './cache.ts'
import { type Followed, parkedAsThere } from './follow.ts'
import { IncludedTime } from './included-time.ts'
import { eventsOf, type Loaded, type PlacedEvent } from './load.ts'
import { type Projection, project } from './project.ts'
import type { Position, PublishedPosition } from './publish.ts'
import { type Batch, bytesOfAll, cut, cutAt, Queue } from './queue.ts'
import type { Refresh } from './refresh.ts'
import type { WeightedSemaphore } from './semaphore.ts'
import { type Rendered, render } from './serialize.ts'

export type Steps = AssessSteps & {
  readonly source: Source & { readonly topic: string }
  /** The only organization whose records are projected; undefined for all. */
  readonly org?: string | undefined
  readonly load: (events: readonly PlacedEvent[], cache: Cache) => Promise<Loaded>
  /** For a generation that follows another: waits for its decisions, and returns what it parked. */
  readonly follow?: ((batch: Batch) => Promise<Followed>) | undefined
  /** Limits the bytes of records that are decided or written, over all partitions. */
  readonly room: WeightedSemaphore
  /** Serializes documents at once and returns the function that writes them. */
  readonly write: (documents: readonly Rendered[]) => () => Promise<void>
  readonly refresh: Refresh
  /** Ends the wait of a refresh that waits because partitions were far behind. */
  readonly hurry: () => void
  /** The indices of these places that lists search, and that must be refreshed before a position is published. */
  readonly searched: (places: ReadonlySet<IndexKind>) => string[]
  readonly published: PublishedPosition
  readonly commit: (position: number) => unknown
  /** Whether more is read than may be in flight. */
  readonly onPressure: (full: boolean) => void
  readonly onProjected: (counts: Projection['counts'], parkedCodes: readonly ParkCode[]) => void
  readonly onPublished: (position: number) => void
  /** As `IncludedTime` tells it. */
  readonly onRecordsBehind: (milliseconds: number) => void
  /** An error that cannot be tried again. Nothing of this partition goes on after it. */
  readonly fail: (error: unknown) => void
}

/** How far one partition is: each is the next offset, and each is at most the one before it. */
export type Progress = {
  readonly readTo: number
  readonly writtenTo: number
  readonly searchableTo: number
  readonly end: number
  readonly farBehind: boolean
}

type Decided = {
  readonly batch: Batch
  readonly write: () => Promise<void>
  readonly places: ReadonlySet<IndexKind>
  readonly at: number
  readonly acknowledged: () => void
}

type Written = {
  readonly end: number
  readonly last: { readonly offset: number; readonly sha256: string } | null
  readonly at: number
  readonly places: ReadonlySet<IndexKind>
  readonly done: Promise<void>
  isDone: boolean
}

export class PartitionFlow {
  readonly #steps: Steps
  readonly #farBehindRecords: number
  readonly #cache: Cache
  readonly #read = new Queue()
  readonly #written: Written[] = []
  readonly #included: IncludedTime
  #bytes = 0
  #full = false
  #readTo: number
  #lastRead: Written['last'] = null
  #writtenTo: number
  #lastWritten: Written['last']
  #at: number
  #end: number
  #closed = false
  #deciding: Promise<void> | undefined
  #publishing: Promise<void> | undefined

  constructor(steps: Steps, farBehindRecords: number) {
    const { position, last, at } = steps.published.current()
    this.#steps = steps
    this.#included = new IncludedTime(steps.onRecordsBehind)
    this.#cache = new Cache(position === 0)
    this.#farBehindRecords = farBehindRecords
    this.#readTo = position
    this.#writtenTo = position
    this.#lastWritten = last
    this.#end = position
    this.#at = at
  }

  get progress(): Progress {
    const searchableTo = this.#steps.published.current().position
    const farBehind = this.#end - this.#writtenTo > this.#farBehindRecords
    return { readTo: this.#readTo, writtenTo: this.#writtenTo, searchableTo, end: this.#end, farBehind }
  }

  /** The last record taken; null before the first. */
  get lastRead(): Written['last'] {
    return this.#lastRead
  }

  /** Takes a batch that begins exactly where the last one ended; anything else is a gap, and is not taken. */
  take(batch: Batch): 'taken' | 'gap' {
    if (this.#closed || batch.from !== this.#readTo) return 'gap'
    this.#readTo = batch.end
    this.#included.read(batch)
    this.#lastRead = lastOf(batch.records) ?? this.#lastRead
    this.#read.add(batch)
    this.#addBytes(bytesOfAll(batch.records))
    this.#keepDeciding()
    return 'taken'
  }

  /** Then the partition held everything before `end` and nothing after. Without a reading no time can be told. */
  sawEnd(end: number, clocks: Reading | undefined): void {
    this.#end = Math.max(end, this.#readTo)
    if (clocks === undefined) return
    this.#included.sawEnd(end, clocks)
    if (this.#steps.published.current().position >= end && !this.#closed) this.#publishTime()
  }

  /** Resolves when everything taken is published, or when it never will be. */
  async settled(): Promise<void> {
    for (let busy = this.#deciding ?? this.#publishing; busy; busy = this.#deciding ?? this.#publishing) await busy
  }

  /** Takes nothing more and publishes nothing more. The caller aborts what is under way. */
  close(): void {
    this.#closed = true
    this.#read.clear()
  }

  // What arrives while a loop is on its way out is seen by the look after it: nothing waits for a next arrival.
  #keepDeciding(): void {
    this.#deciding ??= this.#run(() => this.#decideAll()).then(() => {
      this.#deciding = undefined
      if (!this.#read.isEmpty && !this.#closed) this.#keepDeciding()
    })
  }

  #keepPublishing(): void {
    this.#publishing ??= this.#run(() => this.#publishAll()).then(() => {
      this.#publishing = undefined
      if (this.#written.length > 0 && !this.#closed) this.#keepPublishing()
    })
  }

  async #decideAll(): Promise<void> {
    for (let batch = this.#read.next(); batch && !this.#closed; batch = this.#read.next()) {
      const leave = await this.#steps.room(bytesOfAll(batch.records))
      const written = await this.#decideAndWrite(batch).catch((error: unknown) => {
        leave()
        throw error
      })
      if (written === undefined) return leave()
      void written.done.then(leave)
    }
  }

  /** Returns what is being written, or nothing when the partition was closed meanwhile. */
  async #decideAndWrite(taken: Batch): Promise<Written | undefined> {
    if (this.#closed) return undefined
    const decided = await this.#decide(taken)
    // A write that failed is never done: it ends the flow, and with it this wait.
    while (!this.#closed && this.#unfinished().length >= WRITES_IN_FLIGHT_PER_PARTITION) {
      await this.#unfinished()[0]?.done
    }
    if (this.#closed) return undefined
    this.#at = decided.at
    return this.#startWriting(decided)
  }

  #unfinished(): Written[] {
    return this.#written.filter(({ isDone }) => !isDone)
  }

  /**
   * Decides a batch, or the first part of one: up to where another one decided, and as much as is loaded at once. The
   * rest comes next.
   */
  async #decide(given: Batch): Promise<Decided> {
    const { source, load, onProjected } = this.#steps
    const followed = await this.#steps.follow?.(given)
    const [taken, undecided] = cutAt(given, followed?.until ?? given.end)
    const assessed = taken.records.map(record =>
      parkedAsThere(assessOnly(this.#steps.org, record, this.#steps), followed?.parked),
    )
    const events = eventsOf(assessed)
    const loaded = await load(events, this.#cache)
    const notLoaded = events[loaded.events]
    const [batch, rest] = cut(
      taken,
      taken.records.findIndex(({ offset }) => offset === notLoaded?.seq),
    )
    if (!this.#closed) for (const later of [undecided, rest]) this.#read.putBack(later)
    const { changes, counts, parkedCodes, at } = project(
      assessed.slice(0, batch.records.length),
      loaded.state,
      source,
      this.#at,
    )
    const documents = changes.map(render)
    const acknowledged = this.#cache.decided(documents)
    onProjected(counts, parkedCodes)
    const places = new Set(documents.map(({ place }) => place))
    return { batch, write: this.#steps.write(documents), places, at, acknowledged }
  }

  #startWriting({ batch: { end, records }, write, places, at, acknowledged }: Decided): Written {
    // Drop references to the records before writing, so that the garbage collector can free them.
    const bytes = bytesOfAll(records)
    const writing = write()
    const written: Written = {
      end,
      last: lastOf(records),
      at,
      places,
      done: this.#run(async () => {
        await writing
        acknowledged()
        written.isDone = true
        this.#addBytes(-bytes)
        // What waits to be published need not: there is nothing more to write that would be worth waiting for.
        if (this.#end - end <= this.#farBehindRecords) this.#steps.hurry()
      }),
      isDone: false,
    }
    this.#written.push(written)
    this.#keepPublishing()
    return written
  }

  async #publishAll(): Promise<void> {
    let publishing: Promise<void> = Promise.resolve()
    for (let first = this.#written[0]; first && !this.#closed; first = this.#written[0]) {
      await first.done
      const unfinished = this.#written.findIndex(({ isDone }) => !isDone)
      const group = this.#written.splice(0, unfinished === -1 ? this.#written.length : unfinished)
      const last = group.at(-1)
      if (last === undefined || this.#closed) break
      this.#writtenTo = last.end
      this.#lastWritten = group.findLast(written => written.last !== null)?.last ?? this.#lastWritten
      const position = { position: last.end, last: this.#lastWritten, at: last.at }

      const indices = this.#steps.searched(new Set(group.flatMap(({ places }) => [...places])))
      if (indices.length > 0) await this.#steps.refresh(indices, this.progress.farBehind)
      if (this.#closed) break
      // What comes next is made searchable meanwhile. Positions are published one after the other.
      publishing = this.#run(async () => {
        await this.#tell(this.#included.reachedAt(last.end), position)
        this.#steps.onPublished(last.end)
        if (!this.#closed) this.#steps.commit(last.end)
      })
    }
    await publishing
  }

  #publishTime(): void {
    const time = this.#included.reachedAt(this.#steps.published.current().position)
    if (time !== undefined) void this.#run(() => this.#tell(time))
  }

  /** A time takes back one that is not over, also while records keep coming and the position never reaches the end. */
  #tell(time: number | undefined, further: Partial<Position> = {}): Promise<void> {
    const { published } = this.#steps
    if (time === undefined) return published.advance(further)
    const tell = this.#included.isAhead(published.current().time) ? published.takeBack : published.advance
    return tell({ ...further, time })
  }

  #addBytes(bytes: number): void {
    this.#bytes += bytes
    // Between half and whole it stays as it was. Closed, the partition may be another's: it is not ours to resume.
    const full = this.#bytes > PARTITION_BYTES_IN_FLIGHT / (this.#full ? 2 : 1)
    if (full === this.#full || this.#closed) return
    this.#full = full
    this.#steps.onPressure(full)
  }

  /** Carries a step out. Its failure ends the partition, unless it was closed: then nobody waits for it any more. */
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

/** By what the last record is known again. */
const lastOf = (records: readonly RawRecord[]): Written['last'] => {
  const last = records.at(-1)
  return last === undefined ? null : { offset: last.offset, sha256: hashOf(last) }
}
