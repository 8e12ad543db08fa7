/**
 * A generation under other rules follows the generation that was live at its beginning: it parks the same records.
 * Readers were told that these records are parked, and a corrected event may have come since. If this generation
 * applied such a record, it and the corrected event would both be paid. After a swap the new generation decides alone,
 * from the positions that the other had reached. These positions are stored once, so that a repeated decision has the
 * same result.
 * In: a batch before it is decided. Out: the first offset that may not be decided yet, and the park codes of the
 * records before it.
 * Promises: while the other generation is live, no record is decided before the other has published past it. Every
 * record that the other has published past is decided, even if that position is inside a batch. Its parked records
 * count only if its position, its indices and their shards are still there after they were read: `adopt` sets the
 * position back.
 * Can go wrong: the other generation does not move (waits, and says so), is gone, or lost a shard or an index (stops: a
 * lost parked record looks like an applied one).
 */

import type { ParkCode } from '../../../schemas/errors.ts'
import {
  controlIndexOf,
  type GenerationDocument,
  generationId,
  LIVE_ID,
  type LiveDocument,
  type ParkedDocument,
  type PositionDocument,
  parkedId,
  positionId,
} from '../../../schemas/stored/documents.ts'
import { controlAddress, parkedAddress } from '../../../schemas/stored/layout.ts'
import type { Batch, Followed, ParkedThere } from '../../ledger/index.ts'
import type { GenerationBody } from '../../log/index.ts'
import { type Health, StopError } from '../../runtime/index.ts'
import {
  type Ask,
  type FoundDocument,
  finishSwap,
  type GetDocuments,
  generationsIn,
  getEach,
  type SameIndices,
} from '../../store/index.ts'
import { FOLLOWED_LATE_MS, FOLLOWED_POLL_FIRST_MS, FOLLOWED_POLL_LAST_MS } from '../limits.ts'

export type FollowSteps = {
  readonly getDocuments: GetDocuments
  readonly request: Ask
  readonly assertSame: SameIndices['assertSame']
  readonly sleep: (milliseconds: number) => Promise<void>
  readonly during: Health['during']
}

type Following = { readonly identity: GenerationBody; readonly prefix: string }

/** Returns undefined for a generation that follows none. */
export const createFollow = ({ identity, prefix }: Following, partition: number, steps: FollowSteps) => {
  const { generation, follows, topic } = identity
  if (follows === undefined) return undefined
  const { getDocuments, request, assertSame, sleep, during } = steps
  const itsPosition = controlAddress(prefix, positionId(follows, partition))
  const reachedIn = async (position: FoundDocument<PositionDocument> | undefined): Promise<number> => {
    const [followed] = await getDocuments<GenerationDocument>([controlAddress(prefix, generationId(follows))])
    if (!position?.found || !followed?.found)
      throw new StopError('index_missing', `generation ${follows}, which ${generation} follows`)
    // Its own projector notes a lost shard in this document some seconds later, or never if it does not run.
    await assertSame(followed._source.body, { request, prefix })
    const { position: published, removing } = position._source.body
    // `adopt` removes its parked records now, and sets this position back after that.
    return removing ? 0 : published
  }
  /** The known position of the followed generation, and the offset from which on this generation decides alone. */
  let reached = 0
  let independentFrom: number | undefined

  const readFollowed = async (from: number): Promise<void> => {
    // Read the position first. A position read after the live document could be from after a swap.
    const [position] = await getDocuments<PositionDocument>([itsPosition])
    const [live] = await getDocuments<LiveDocument>([controlAddress(prefix, LIVE_ID)])
    if (!live?.found) throw new StopError('index_missing', `${LIVE_ID} in ${controlIndexOf(prefix)}`)
    const generations = generationsIn(live._source)
    independentFrom = generations.independentFrom[generation]?.[partition]
    if (independentFrom === undefined && generations.live === generation) await finishSwap({ request, prefix })
    // After a restore from a snapshot both generations start again from the first record. Until the other one is that
    // far, its parked records may be missing.
    else if (independentFrom === undefined || from < independentFrom) reached = await reachedIn(position)
  }
  /** The first offset that may not be decided yet. */
  const firstUndecidable = (): number =>
    independentFrom === undefined || reached < independentFrom ? reached : Number.POSITIVE_INFINITY

  /**
   * Waits until the other generation has decided the first record. It does not wait for the whole batch, because the
   * batches of the two generations differ.
   */
  const waitUntilDecided = ({ from }: Batch): Promise<void> =>
    during({ generation, name: `following ${follows}` }, async report => {
      let waited = 0
      for (let pause = FOLLOWED_POLL_FIRST_MS; ; pause = Math.min(2 * pause, FOLLOWED_POLL_LAST_MS)) {
        await readFollowed(from)
        if (from >= (independentFrom ?? Number.POSITIVE_INFINITY) || firstUndecidable() > from) return
        if (waited >= FOLLOWED_LATE_MS) report(`waits for ${follows}, which has not decided the next record yet`)
        await sleep(pause)
        waited += pause
      }
    })

  const parkedOf = async (offsets: readonly number[]): Promise<ParkedThere> => {
    const parked = new Map<number, ParkCode>()
    const docs = offsets.map(offset => ({
      ...parkedAddress(prefix, follows, parkedId(topic, partition, offset)),
      _source: ['code'],
    }))
    const found = await getEach(docs, getDocuments<Pick<ParkedDocument, 'code'>>)
    for (const [at, document] of found.entries()) {
      const offset = offsets[at]
      if (document.found && offset !== undefined) parked.set(offset, document._source.code)
    }
    return parked
  }

  /** Whether the other one still has what was read of it: it may have been set back since its position was read. */
  const hasStill = async (offset: number): Promise<boolean> => {
    const [position] = await getDocuments<PositionDocument>([itsPosition])
    const now = await reachedIn(position)
    if (now < offset) reached = now
    return now >= offset
  }

  return async (batch: Batch): Promise<Followed> => {
    const isIndependent = () => independentFrom !== undefined && batch.from >= independentFrom
    for (;;) {
      // Read the other's position before its parked records: it writes those before its position moves past them.
      if (!isIndependent() && firstUndecidable() < batch.end) await waitUntilDecided(batch)
      const decidableTo = isIndependent() ? batch.end : Math.min(firstUndecidable(), batch.end)
      const parkedTo = Math.min(independentFrom ?? decidableTo, decidableTo)
      const offsets = batch.records.flatMap(({ offset }) => (offset < parkedTo ? [offset] : []))
      const parked = await parkedOf(offsets)
      if (offsets.length === 0 || (await hasStill(parkedTo))) return { decidableTo, parked }
    }
  }
}
