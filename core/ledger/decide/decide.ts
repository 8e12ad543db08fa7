/**
 * The first half of the flow: decides one batch.
 * In: a batch, and the cache. Out: the documents to write, the outcomes, and the rest of the batch for later: the part
 * that the followed generation has not decided, and the part not loaded.
 * Promises: each decision sees all earlier ones. For this, the caller decides one batch after the other, and adds its
 * documents to the cache before the next.
 * Can go wrong: as `load` and `follow`.
 */

import type { PartitionSource } from '../event/validate.ts'
import { type AssessSteps, assessOrSkip } from './assess.ts'
import type { Cache } from './cache.ts'
import { type Followed, parkAsFollowed } from './followed.ts'
import { eventsOf, type Loaded, type PendingEvent } from './load.ts'
import { type ProjectedBatch, project } from './project.ts'
import { type Batch, splitAtOffset } from './queue.ts'
import { type SerializedChange, serialize } from './serialize.ts'

export type DecideSteps = AssessSteps & {
  readonly source: PartitionSource & { readonly topic: string }
  readonly load: (events: readonly PendingEvent[], cache: Cache) => Promise<Loaded>
  /** For a generation that follows another: waits until the other has decided, and returns what it parked. */
  readonly follow?: ((batch: Batch) => Promise<Followed>) | undefined
}

export type DecidedBatch = Omit<ProjectedBatch, 'changes'> & {
  readonly batch: Batch
  /** Undecided parts of the given batch. The later part is first, because each is put back before the one before it. */
  readonly rest: readonly Batch[]
  readonly documents: readonly SerializedChange[]
}

export const decideBatch = async (given: Batch, cache: Cache, steps: DecideSteps): Promise<DecidedBatch> => {
  const followed = await steps.follow?.(given)
  const [taken, notFollowed] = splitAtOffset(given, followed?.decidableTo ?? given.end)
  const assessed = taken.records.map(record => parkAsFollowed(assessOrSkip(record, steps), followed?.parked))
  const events = eventsOf(assessed)
  const loaded = await steps.load(events, cache)
  const firstNotLoaded = events[loaded.count]
  const [batch, notLoaded] = splitAtOffset(taken, firstNotLoaded?.seq ?? taken.end)
  const decidable = assessed.slice(0, batch.records.length)
  const { changes, ...outcomes } = project(decidable, loaded.state, steps.source)
  return { batch, rest: [notFollowed, notLoaded], documents: changes.map(serialize), ...outcomes }
}
