/**
 * The writes of one partition, in the order of the log. In: batches that are written and become searchable, in any
 * order. Out: groups of batches that are searchable, with all before them.
 * Promises: a group comes only when every batch before its end is searchable. All batches before the first other one
 * are one group. After `close` no group comes.
 */
import type { IndexKind } from '../../../schemas/stored/layout.ts'
import type { PublishedState } from '../../store/index.ts'

/** The last record up to a position, and its time. */
export type RecordReached = Pick<PublishedState, 'last' | 'at'>

/** The write of a batch. */
export type BatchWrite = {
  readonly end: number
  /** Undefined if no record is in it: then it is the one of an earlier batch. */
  readonly last: RecordReached | undefined
  /** The kinds of its documents. */
  readonly kinds: ReadonlySet<IndexKind>
  isWritten: boolean
  /** Lists find its documents. */
  isSearchable: boolean
}

/** Batches that can be published together. */
export type Publishable = Pick<BatchWrite, 'end' | 'last'>

type UnderWay = { readonly write: BatchWrite; readonly written: Promise<void>; readonly searchable: Promise<void> }

export class InOrder {
  readonly #writes: UnderWay[] = []
  #takenTo: number
  #closed = false

  constructor(position: number) {
    this.#takenTo = position
  }

  /** Everything before this offset is written. */
  get writtenTo(): number {
    const unwritten = this.#writes.findIndex(({ write }) => !write.isWritten)
    const last = (unwritten === -1 ? this.#writes.length : unwritten) - 1
    return this.#writes[last]?.write.end ?? this.#takenTo
  }

  get isEmpty(): boolean {
    return this.#writes.length === 0
  }

  /**
   * @param written resolves when the write has ended. Both promises resolve also if their step failed: the partition is
   *   closed then.
   * @param searchable resolves when lists find the documents
   */
  push(write: BatchWrite, written: Promise<void>, searchable: Promise<void>): void {
    this.#writes.push({ write, written, searchable })
  }

  /** The first write under way; undefined if fewer than this many are. */
  firstUnwrittenOf(writes: number): Promise<void> | undefined {
    const unwritten = this.#writes.filter(({ write }) => !write.isWritten)
    return this.#closed || unwritten.length < writes ? undefined : unwritten[0]?.written
  }

  /** Gives the first batch again and again, until none is left. Once it is searchable, there is a group to take. */
  *untilFirstIsSearchable(): Generator<Promise<void>, void> {
    for (let [first] = this.#writes; first && !this.#closed; [first] = this.#writes) yield first.searchable
  }

  /** Takes all searchable batches before the first other one. Returns undefined without one, and after `close`. */
  takeSearchable(): Publishable | undefined {
    const other = this.#writes.findIndex(({ write }) => !write.isSearchable)
    const group = this.#writes.splice(0, other === -1 ? this.#writes.length : other).map(({ write }) => write)
    const end = group.at(-1)?.end
    if (end === undefined || this.#closed) return undefined
    this.#takenTo = end
    return { end, last: group.findLast(({ last }) => last !== undefined)?.last }
  }

  close(): void {
    this.#closed = true
  }
}
