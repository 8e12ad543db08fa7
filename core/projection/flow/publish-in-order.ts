/**
 * The second half of the flow: makes written batches searchable and publishes their position, in the order of the log.
 * In: batches under way to Elasticsearch. Out: the published position and time; the commit to Kafka.
 * Promises: a position is published only when all documents before it are written, and those that lists search are
 *   searchable. Writes end in any order. All batches before the first unfinished one are refreshed and published
 *   together.
 * Can go wrong: as `refresh` and `published`.
 */
import type { IndexKind } from '../../ledger/index.ts'
import type { PublishedPosition, PublishedState, Refresh } from '../../store/index.ts'
import type { IncludedTime } from './included-time.ts'

export type PublishInOrderSteps = {
  readonly refresh: Refresh
  /** Returns the indices of these kinds that lists search. They must be refreshed before publishing. */
  readonly searchedIndices: (kinds: ReadonlySet<IndexKind>) => string[]
  readonly published: PublishedPosition
  readonly commit: (position: number) => unknown
  readonly onPublished: () => void
}

/** A batch whose write is under way, or done and not yet published. */
export type BatchWrite = {
  readonly end: number
  readonly last: PublishedState['last']
  readonly at: number
  readonly kinds: ReadonlySet<IndexKind>
  readonly done: Promise<void>
  isDone: boolean
}

type Parts = {
  readonly steps: PublishInOrderSteps
  readonly included: IncludedTime
  readonly isFarBehind: () => boolean
  /** Runs a step. A failure closes and fails the partition. */
  readonly run: (step: () => Promise<void>) => Promise<void>
}

export class InOrderPublisher {
  readonly #parts: Parts
  readonly #writes: BatchWrite[] = []
  #writtenTo: number
  #lastWritten: PublishedState['last']
  #publishing: Promise<void> | undefined
  #closed = false

  constructor(parts: Parts) {
    const { position, last } = parts.steps.published.current()
    this.#parts = parts
    this.#writtenTo = position
    this.#lastWritten = last
  }

  get writtenTo(): number {
    return this.#writtenTo
  }

  /** Resolves when the present publishing ends. Undefined if nothing is being published. */
  get publishing(): Promise<void> | undefined {
    return this.#publishing
  }

  /** Adds a batch whose write is under way. The caller adds batches in the order of the log. */
  add(write: BatchWrite): void {
    this.#writes.push(write)
    this.#keepPublishing()
  }

  unfinished(): BatchWrite[] {
    return this.#writes.filter(({ isDone }) => !isDone)
  }

  publishTime(): void {
    const { included, steps, run } = this.#parts
    const time = included.reachedAt(steps.published.current().position)
    if (time !== undefined) void run(() => this.#publish(time))
  }

  close(): void {
    this.#closed = true
  }

  // Look again after the loop ends: a batch that was written meanwhile must not wait for the next one.
  #keepPublishing(): void {
    this.#publishing ??= this.#parts
      .run(() => this.#publishAll())
      .then(() => {
        this.#publishing = undefined
        if (this.#writes.length > 0 && !this.#closed) this.#keepPublishing()
      })
  }

  async #publishAll(): Promise<void> {
    const { steps, included, isFarBehind, run } = this.#parts
    let publishing: Promise<void> = Promise.resolve()
    for (let first = this.#writes[0]; first && !this.#closed; first = this.#writes[0]) {
      await first.done
      const unfinished = this.#writes.findIndex(({ isDone }) => !isDone)
      const group = this.#writes.splice(0, unfinished === -1 ? this.#writes.length : unfinished)
      const last = group.at(-1)
      if (last === undefined || this.#closed) break
      this.#writtenTo = last.end
      this.#lastWritten = group.findLast(write => write.last !== null)?.last ?? this.#lastWritten
      const position = { position: last.end, last: this.#lastWritten, at: last.at }

      const indices = steps.searchedIndices(new Set(group.flatMap(({ kinds }) => [...kinds])))
      if (indices.length > 0) await steps.refresh(indices, isFarBehind())
      if (this.#closed) break
      // Publish while the next group is refreshed. `published` writes one position after the other.
      publishing = run(async () => {
        await this.#publish(included.reachedAt(last.end), position)
        steps.onPublished()
        if (!this.#closed) steps.commit(last.end)
      })
    }
    await publishing
  }

  /**
   * Publishes a position, a time, or both. If the published time is ahead of all clocks, the new time replaces it. This
   * works also under constant load, when the position never reaches the end.
   */
  #publish(time: number | undefined, further: Partial<PublishedState> = {}): Promise<void> {
    const { steps, included } = this.#parts
    if (time === undefined) return steps.published.advance(further)
    const isAhead = included.isAhead(steps.published.current().time)
    return (isAhead ? steps.published.takeBack : steps.published.advance)({ ...further, time })
  }
}
