/**
 * The ledger of one partition: decides its batches, and keeps the documents that the next decisions need.
 * In: one batch after the other, in the order of the log. Out: each as it was decided.
 * Promises: a decision sees all earlier ones, written or not. A decided document stays in the cache until it is
 * acknowledged as written.
 * Can go wrong: as `decideBatch`.
 */
import { Cache } from './cache.ts'
import { type Decided, type Deciding, decideBatch } from './decide.ts'
import type { ReadDocuments } from './load.ts'
import type { Batch } from './queue.ts'

type Parts = {
  readonly deciding: Deciding
  /** Reads the documents that are not in the cache. */
  readonly read: ReadDocuments
  /** Limits throughput: waits after this many events were loaded. */
  readonly pace?: ((events: number) => Promise<void>) | undefined
  /** The offset of the first record to decide. From the first record on, a document that was not decided is absent. */
  readonly from: number
  /** The part of the full size that the cache may take. */
  readonly share: number
}

/** `acknowledge` is called when the documents are written: they need not stay in the cache. */
export type DecidedBatch = Omit<Decided, 'assessed' | 'state'> & { readonly acknowledge: () => void }

export class PartitionLedger {
  readonly deciding: Deciding
  readonly #parts: Parts
  readonly #cache: Cache

  constructor(parts: Parts) {
    this.deciding = parts.deciding
    this.#parts = parts
    this.#cache = new Cache({ fromFirstRecord: parts.from === 0, share: parts.share })
  }

  /** The caller waits for the last decision before it asks for the next one. */
  async decide(given: Batch): Promise<DecidedBatch> {
    const { read, pace } = this.#parts
    // Without what only the decision needed: that would take memory until the documents are written.
    const { assessed: _, state: __, ...decided } = await decideBatch(given, this.deciding, this.#cache, read)
    await pace?.(decided.loaded)
    return { ...decided, acknowledge: this.#cache.addDecided(decided.documents) }
  }
}
