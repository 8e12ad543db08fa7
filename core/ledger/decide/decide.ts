/**
 * Decides a batch: the one way from records to documents. The flow, the forecasts, the check of rules, the golden log
 * and the tests all call it, so that none of them decides otherwise.
 *
 *   assess each record alone → load the documents that the rules may read → project: the rules decide, in order
 *
 * In: a batch, and the cache. Out: the documents to write, the outcomes, and the rest of the batch for later: the part
 * that the followed generation has not decided, and the part not loaded.
 * Promises: each decision sees all earlier ones. For this, the caller decides one batch after the other, and adds its
 * documents to the cache before the next.
 * Can go wrong: as `load` and `follow`.
 */
import type { ParkCode } from '../../../schemas/errors.ts'
import type { Batch, RawRecord } from '../event/raw-record.ts'
import type { PartitionSource } from '../event/validate.ts'
import type { State } from '../rules/state.ts'
import { type Assessed, type AssessSteps, assessOrSkip, type Skipped } from './assess.ts'
import { Cache } from './cache.ts'
import { eventsOf, load, type ReadDocuments } from './load.ts'
import { type DecidedDocument, type ProjectedBatch, project, serialize } from './project.ts'
import { splitAtOffset } from './queue.ts'

/** The code of each record that the followed generation parked, by offset. */
export type ParkedThere = ReadonlyMap<number, ParkCode>

/** `decidableTo` is the first offset that may not be decided yet. */
export type Followed = { readonly decidableTo: number; readonly parked: ParkedThere }

/** Where the records of a batch are, and by which rules they are decided. */
export type Deciding = AssessSteps & {
  readonly source: PartitionSource & { readonly topic: string }
  /** For a generation that follows another: waits until the other has decided, and returns what it parked. */
  readonly follow?: ((batch: Batch) => Promise<Followed>) | undefined
}

export type Decided = Omit<ProjectedBatch, 'changes'> & {
  readonly batch: Batch
  /** Undecided parts of the given batch, in the order of putting back: the last part first. */
  readonly rest: readonly Batch[]
  readonly documents: readonly DecidedDocument[]
  /** Each decided record, as `assess` saw it without the records before. */
  readonly assessed: readonly (Assessed | Skipped)[]
  /** How many events were loaded. */
  readonly loaded: number
  /** The documents that the rules could read, as they are after the last decision. */
  readonly state: State
}

export const decideBatch = async (
  given: Batch,
  deciding: Deciding,
  cache: Cache,
  read: ReadDocuments,
): Promise<Decided> => {
  const followed = await deciding.follow?.(given)
  const [taken, notFollowed] = splitAtOffset(given, followed?.decidableTo ?? given.end)
  const assessed = taken.records.map(record => parkAsFollowed(assessOrSkip(record, deciding), followed?.parked))
  const events = eventsOf(assessed)
  const { state, count: loaded } = await load(events, cache, read)
  const [batch, notLoaded] = splitAtOffset(taken, events[loaded]?.seq ?? taken.end)
  const decidable = assessed.slice(0, batch.records.length)
  const { changes, ...outcomes } = project(decidable, state, deciding.source)
  const documents = changes.map(serialize)
  return { batch, rest: [notFollowed, notLoaded], documents, assessed: decidable, loaded, state, ...outcomes }
}

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

/**
 * The ledger of one partition: decides its batches, and keeps the documents that the next decisions need. A decision
 * sees all earlier ones, written or not. A decided document stays in the cache until it is acknowledged as written.
 */
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

/** There is nothing to read for decisions from the first record on: the cache has every document. */
export const readNothing: ReadDocuments = async keys => new Map(keys.map(key => [key, null]))

/** A record as a batch of its own. */
export const batchOfOne = (record: RawRecord): Batch => ({
  from: record.offset,
  end: record.offset + 1,
  records: [record],
})

/** The outcome of the only record of a batch: `applied`, `duplicate` or the code under which it is parked. */
export const outcomeOf = ({ counts, parkedCodes }: Pick<Decided, 'counts' | 'parkedCodes'>) =>
  parkedCodes[0] ?? (counts.duplicate > 0 ? 'duplicate' : 'applied')

/** Parks a record that the followed generation parked, with the same code, whatever these rules decide. */
export const parkAsFollowed = (assessed: Assessed | Skipped, parked: ParkedThere | undefined): Assessed | Skipped => {
  const code = parked?.get(assessed.record.offset)
  if (code === undefined || 'skipped' in assessed) return assessed
  return { ...assessed, verdict: code, reads: {}, rules: undefined }
}
