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

import type { RawRecord } from '../event/raw-record.ts'
import type { PartitionSource } from '../event/validate.ts'
import type { State } from '../rules/state.ts'
import { type AssessSteps, assessOrSkip } from './assess.ts'
import type { Cache } from './cache.ts'
import { type Followed, parkAsFollowed } from './followed.ts'
import { eventsOf, load, type ReadDocuments } from './load.ts'
import { type Assessed, type ProjectedBatch, project, type Skipped } from './project.ts'
import { type Batch, splitAtOffset } from './queue.ts'
import { type DecidedDocument, serialize } from './serialize.ts'

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
