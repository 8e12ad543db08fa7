/**
 * The writes of one partition, in the order of the log. In: batches whose writes are under way, which end in any order.
 * Out: groups of batches that are written, with all before them.
 * Promises: a group comes only when every batch before its end is written. All batches before the first unfinished one
 * are one group. After `close` no group comes.
 */
import type { IndexKind } from '../../../schemas/stored/layout.ts'
import type { PublishedState } from '../../store/index.ts'

/** The last record up to a position, and its time. */
export type RecordReached = Pick<PublishedState, 'last' | 'at'>

/** The write of a batch, or of a group of batches. */
export type BatchWrite = {
  readonly end: number
  /** Undefined if no record is in it: then it is the one of an earlier batch. */
  readonly last: RecordReached | undefined
  /** The kinds of its documents. */
  readonly kinds: ReadonlySet<IndexKind>
  /** Set when it is written. */
  isDone: boolean
}

type UnderWay = { readonly write: BatchWrite; readonly done: Promise<void> }

export class InOrder {
  readonly #writes: UnderWay[] = []
  #writtenTo: number
  #closed = false

  constructor(position: number) {
    this.#writtenTo = position
  }

  /** Everything before this offset is written. */
  get writtenTo(): number {
    return this.#writtenTo
  }

  get isEmpty(): boolean {
    return this.#writes.length === 0
  }

  /** @param done resolves when the batch is written, or when its write failed and the partition is closed */
  push(write: BatchWrite, done: Promise<void>): void {
    this.#writes.push({ write, done })
  }

  /** The first write under way; undefined if fewer than this many are. */
  firstUnfinishedOf(writes: number): Promise<void> | undefined {
    const unfinished = this.#writes.filter(({ write }) => !write.isDone)
    return this.#closed || unfinished.length < writes ? undefined : unfinished[0]?.done
  }

  /** Gives the first write again and again, until none is left: when it is done, `takeWritten` returns a group. */
  *untilFirstIsWritten(): Generator<Promise<void>, void> {
    for (let [first] = this.#writes; first && !this.#closed; [first] = this.#writes) yield first.done
  }

  /** Takes all written batches before the first unfinished one. Returns undefined without one, and after `close`. */
  takeWritten(): BatchWrite | undefined {
    const unfinished = this.#writes.findIndex(({ write }) => !write.isDone)
    const group = this.#writes.splice(0, unfinished === -1 ? this.#writes.length : unfinished).map(({ write }) => write)
    const end = group.at(-1)?.end
    if (end === undefined || this.#closed) return undefined
    this.#writtenTo = end
    const last = group.findLast(({ last }) => last !== undefined)?.last
    return { end, last, kinds: new Set(group.flatMap(({ kinds }) => [...kinds])), isDone: true }
  }

  close(): void {
    this.#closed = true
  }
}
