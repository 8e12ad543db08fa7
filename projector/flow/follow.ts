/**
 * A generation under other rules follows the generation that was live when it began: it parks the records which that
 * one has parked. Readers were told that these records are parked, and a corrected event may have come since: without
 * this rule both would be paid. After a swap the new generation decides alone, from the positions that the other one
 * had reached. These positions are stored once, so that a repeated decision comes out the same.
 * In: a batch that is about to be decided. Out: the first offset that may not be decided yet, and, by offset, the
 * records before it that the other one parked.
 * Promises: as long as the other one is live, no record is decided before the other one has published past it. All that
 *   it has published past is decided, also where it stopped in the middle of a batch.
 * Can go wrong: the other one does not move on (waited for, and said); it is gone (stops).
 */

import type { ParkCode } from '../../schemas/errors.ts'
import {
  controlIndexOf,
  indexOf,
  LIVE_ID,
  type LiveDocument,
  parkedId,
  positionId,
} from '../../schemas/stored/documents.ts'
import type { Answer, DocumentAddress, Found, Request } from '../elasticsearch/client.ts'
import { StopError } from '../failures.ts'
import { generationsIn, settle } from '../generations/generations.ts'
import type { Health } from '../health.ts'
import type { Identity } from '../kafka/source.ts'
import { FOLLOWED_LATE_MS, FOLLOWED_LOOK_FIRST_MS, FOLLOWED_LOOK_LAST_MS } from '../limits.ts'
import type { Assessed, PassedOver } from './project.ts'
import type { Batch } from './queue.ts'

/** The code of each record that the followed generation parked, by offset. */
export type ParkedThere = ReadonlyMap<number, ParkCode>

/** `until` is the first offset that may not be decided yet. */
export type Followed = { readonly until: number; readonly parked: ParkedThere }

export type FollowSteps = {
  /** Realtime; as many of the first as one answer holds. Tries until it is answered. */
  readonly multiGet: (docs: readonly DocumentAddress[]) => Promise<Found[]>
  /** Tries until it is answered. */
  readonly request: (request: Request) => Promise<Answer>
  readonly sleep: (milliseconds: number) => Promise<void>
  readonly during: Health['during']
}

type Following = { readonly identity: Identity; readonly prefix: string }

/** Undefined for a generation that follows none: it asks nobody. */
export const createFollow = ({ identity, prefix }: Following, partition: number, steps: FollowSteps) => {
  const { generation, follows, topic } = identity
  if (follows === undefined) return undefined
  const { multiGet, request, sleep, during } = steps
  const _index = controlIndexOf(prefix)
  const reachedIn = (found: Found | undefined): number => {
    if (found?.found) return (found._source as { body: { position: number } }).body.position
    throw new StopError('index_missing', `generation ${follows}, which ${generation} follows`)
  }
  /**
   * Up to where the followed one has decided, as far as we know; and from where on it does not matter what it decides.
   */
  let reached = 0
  let alone: number | undefined

  const look = async (from: number): Promise<void> => {
    // One after the other: with a swap in between, the position would be one that the other reached while it was live
    // no more.
    const [position] = await multiGet([{ _index, _id: positionId(follows, partition) }])
    const [live] = await multiGet([{ _index, _id: LIVE_ID }])
    if (!live?.found) throw new StopError('index_missing', `${LIVE_ID} in ${_index}`)
    const generations = generationsIn(live._source as LiveDocument)
    alone = generations.alone[generation]?.[partition]
    if (alone === undefined && generations.live === generation) await settle({ request, prefix })
    // Taken from a copy, both are read again from the first record: what the other one parked may be there again only
    // once it is that far.
    else if (alone === undefined || from < alone) reached = reachedIn(position)
  }
  /** The first offset that may not be decided yet. */
  const decidedTo = (): number => (alone === undefined || reached < alone ? reached : Number.POSITIVE_INFINITY)

  /** Waits until the first record of a batch is decided there: the two generations read in batches of their own. */
  const untilDecided = ({ from }: Batch): Promise<void> =>
    during(`${generation} following ${follows}`, async tell => {
      let waited = 0
      for (let pause = FOLLOWED_LOOK_FIRST_MS; ; pause = Math.min(2 * pause, FOLLOWED_LOOK_LAST_MS)) {
        await look(from)
        if (from >= (alone ?? Number.POSITIVE_INFINITY) || decidedTo() > from) return
        if (waited >= FOLLOWED_LATE_MS) tell(`waits for ${follows}, which has yet to decide what comes next`)
        await sleep(pause)
        waited += pause
      }
    })

  const parkedOf = async (offsets: readonly number[]): Promise<ParkedThere> => {
    const parked = new Map<number, ParkCode>()
    const place = indexOf(prefix, follows, 'parked')
    for (let waiting = offsets; waiting.length > 0; ) {
      const docs = waiting.map(offset => ({
        _index: place,
        _id: parkedId(topic, partition, offset),
        _source: ['code'],
      }))
      const found = await multiGet(docs)
      for (const [at, { found: isParked, _source }] of found.entries()) {
        const offset = waiting[at]
        if (isParked && offset !== undefined) parked.set(offset, (_source as { code: ParkCode }).code)
      }
      waiting = waiting.slice(found.length)
    }
    return parked
  }

  return async (batch: Batch): Promise<Followed> => {
    // Read before what it parked: all of that was written before its position moved past it.
    const isAlone = () => alone !== undefined && batch.from >= alone
    if (!isAlone() && decidedTo() < batch.end) await untilDecided(batch)
    const until = isAlone() ? batch.end : Math.min(decidedTo(), batch.end)
    const parkedUntil = alone ?? until
    const parked = await parkedOf(batch.records.flatMap(({ offset }) => (offset < parkedUntil ? [offset] : [])))
    return { until, parked }
  }
}

/** What was parked there is parked here, for the same reason, whatever these rules would say. */
export const parkedAsThere = <Item extends Assessed | PassedOver>(
  assessed: Item,
  parked: ParkedThere | undefined,
): Item | Assessed => {
  const code = parked?.get(assessed.record.offset)
  if (code === undefined || 'passedOver' in assessed) return assessed
  return { ...(assessed as Assessed), verdict: code, names: {}, rules: undefined }
}
