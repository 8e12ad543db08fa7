/**
 * The copies that an erasure rests on: of the live generation, of API keys, and of all else that is searched. A copy
 * that lacks documents hides texts of others, which nobody can read without the key, and other keys of the person.
 * In: the control index. Out: the live projection, or an error before anything is destroyed.
 */
import { assertSeesAll, readGeneration, readShardIds } from '../../core/store/index.ts'
import type { Stream } from '../../schemas/events.ts'
import { missingAmong } from '../../schemas/stored/shard-ids.ts'
import type { CommandContext } from '../context.ts'
import { refuseUncompared } from '../documents/shards.ts'
import { CommandError } from '../failures.ts'
import { INCLUDED_WAIT_MS } from '../limits.ts'
import {
  copyIn,
  includedUpTo,
  type Live,
  type LiveProjection,
  readProjection,
  readProjectionUpTo,
  readServedLive,
  readSight,
  refuseUnseen,
  unknownShardIn,
} from '../live.ts'
import { timeOf } from '../terminal.ts'
import { type SearchedGeneration, searchedGenerations } from './find-subjects.ts'

export const liveGeneration = async (context: CommandContext): Promise<SearchedGeneration> => {
  const live = (await readServedLive(context.send, context.prefix)).events.identity.generation
  const searched = await searchedGenerations(context)
  await assertSeesAll(
    searched.flatMap(({ indices }) => indices),
    { request: context.send },
    false,
  )
  const found = searched.find(({ label }) => label === live)
  if (found) return found
  throw new CommandError(`generation ${live} is gone`)
}

/**
 * Returns the live projection, which includes what was published before the command began. No search finds the
 * rest: a destroyed key could seal it, and other keys of the person would stay.
 * @param completeUpTo it need not include what was published later
 * @throws CommandError if it includes less after INCLUDED_WAIT_MS; also as `readServedLive`
 */
export const wholeProjection = async (
  completeUpTo: number | undefined,
  context: CommandContext,
): Promise<LiveProjection> => {
  const moment = completeUpTo ?? context.now()
  const projection = await readProjectionUpTo(moment, INCLUDED_WAIT_MS, context)
  const included = includedUpTo(projection)
  if (included >= moment) return projection
  const what = `the documents include only what was published up to ${timeOf(included)}`
  const advice = `Is the projector running? To leave out what was published later: --complete-up-to ${timeOf(included)}`
  throw new CommandError(`${what}: nothing was destroyed. ${advice}`)
}

/**
 * Reads the positions again.
 * @throws CommandError if a live copy was replaced, or taken over, since. It can lack texts of others. Also as
 *   `readServedLive`
 */
export const sameProjection = async (
  before: LiveProjection,
  { send, prefix }: CommandContext,
): Promise<LiveProjection> => {
  const now = await readProjection(send, prefix)
  if (copiesIn(now) === copiesIn(before)) return now
  const why = 'a copy was restored or taken over, ids of shards were recorded, or a wrong clock was corrected'
  const what = `another generation was made live meanwhile, ${why}`
  throw new CommandError(`${what}: nothing was destroyed. Run the same command again`)
}

/** Names the live copies of both streams. `adopt` and `rewind` raise `taken_back`. */
const copiesIn = (projection: LiveProjection): string => {
  const { generation } = projection.live.events.identity
  return JSON.stringify([generation, copyIn(projection, 'events'), copyIn(projection, 'api-keys')])
}

/**
 * Looks for a recorded shard that cannot be compared: of the live copies, and of each index that is searched, also of
 * spare generations, sandboxes and parked records. Also asks whether a role hides documents of them.
 * @param refusal as of `refuseUncompared`, which throws as here
 */
export const refuseUncomparedCopies = async (
  live: Live,
  refusal: string | undefined,
  context: CommandContext,
): Promise<void> => {
  let shard = unknownShardIn(live)
  const searched = await searchedGenerations(context)
  for (const one of searched) shard ??= await unknownShardOf(one)
  refuseUncompared(shard, refusal, context)
  const indices = searched.flatMap(one => one.indices)
  refuseUnseen(await readSight(indices, context.send), refusal, context)
}

/** Of the indices that are there: one that is not whole, or is being dropped, has no document or fewer indices. */
const unknownShardOf = async ({ name, indices, context }: SearchedGeneration): Promise<string | undefined> => {
  const steps = { request: context.send, prefix: context.prefix }
  const recorded = (await readGeneration(name, steps))?.shards
  if (recorded === undefined) return undefined
  return missingAmong(recorded, await readShardIds(indices, steps), index => indices.includes(index))[0]
}

type Positions = LiveProjection['positions'][Stream]
/** The lowest offset that was projected meanwhile; undefined if nothing was. A partition at rest does not count. */
export const firstSince = (before: Positions, after: Positions): number | undefined => {
  const advanced = before.filter(({ position }, partition) => after[partition]?.position !== position)
  return advanced.length === 0 ? undefined : Math.min(...advanced.map(({ position }) => position))
}
