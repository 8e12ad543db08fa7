/**
 * `commission projection drop`: deletes a generation that is not live. It can be killed between any two steps:
 * 1. Remove the name from the live document: projectors and rebuilds stop.
 * 2. Wait for all of them.
 * 3. Delete indices, positions, and last the document of the generation.
 * Promises: an interrupted `drop` can be repeated until nothing of the generation is left. With another KAFKA_GROUP_ID
 *   the group looks empty although projectors write: so positions must stand still, too. Names are never used again.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Admin } from 'kafkajs'
import { assertSameSource, connectAdmin, describeSource, withRight } from '../../core/log/index.ts'
import { DRAIN_TIMEOUT_MS, GENERATIONS_POLL_MS, STREAMS_STOP_TIMEOUT_MS } from '../../core/projection/index.ts'
import {
  changeGenerations,
  finishSwap,
  type Generations,
  getEach,
  multiGet,
  readGeneration,
} from '../../core/store/index.ts'
import { positionId, timesId } from '../../schemas/stored/documents.ts'
import { controlAddress } from '../../schemas/stored/layout.ts'
import type { CommandContext, KafkaContext } from '../context.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { DROP_WAIT_MS, QUIET_MS, QUIET_POLL_MS } from '../limits.ts'
import { withoutComparisons } from './compared.ts'
import { deleteGeneration, namesOf, positionsOf, readAll, recordedIdentityOf } from './generations.ts'
import { findRemains } from './remains.ts'

/**
 * Milliseconds that a healthy projector needs to stop a dropped generation: it notices the drop, publishes what it has
 * read, and leaves its group. Then QUIET_MS without a change of any position: a running projector writes the time of
 * each position within a second.
 */
export const PROJECTOR_STOP_MS = GENERATIONS_POLL_MS + DRAIN_TIMEOUT_MS + STREAMS_STOP_TIMEOUT_MS + 1_500

export const drop = async (
  { generation, json }: { readonly generation: string; readonly json: boolean },
  context: KafkaContext,
  groupId: string,
): Promise<ExitCode> => {
  await using stack = new AsyncDisposableStack()
  const now = await readAll(context)
  if (!namesOf(now).includes(generation) && !(await findRemains(context)).has(generation)) {
    throw new CommandError(`there is no generation ${generation} (npx commission projection list)`)
  }
  const live = await recordedIdentityOf(now.live, context)
  const admin = await connectAdmin(context.kafka, stack)
  // On another cluster the projectors' group would look empty.
  assertSameSource(live, await describeSource(admin, context.topics.events))
  await removeName(generation, context)
  const group = `${groupId}-${generation}`
  await waitUntilNobodyWrites(generation, live.partitions, group, admin, context)
  await deleteGeneration(generation, group, admin, context)
  context.say(`${generation} is dropped`)
  if (json) context.out(`${JSON.stringify({ dropped: generation })}\n`)
  return exitCodes.done
}

/** Removes the name, in one change of exactly the state that was checked. @throws CommandError */
const removeName = async (generation: string, context: CommandContext): Promise<void> => {
  const steps = { request: context.send, prefix: context.prefix }
  for (let isOut = false; !isOut; ) {
    // `finishSwap` needs the positions of the previous generation if a swap was interrupted.
    await finishSwap(steps)
    const seen = await readAll(context)
    if (seen.live === generation) throw new CommandError(`${generation} is live: it cannot be dropped`)
    await refuseFollowed(generation, seen, context)
    await changeGenerations(steps, now => {
      isOut = isDeepStrictEqual(now, seen) && now.minPositions !== null
      return isOut && namesOf(now).includes(generation) ? without(generation, now) : now
    })
  }
}

/** @throws CommandError while another generation still needs what this one parked */
const refuseFollowed = async (generation: string, all: Generations, context: CommandContext): Promise<void> => {
  for (const name of namesOf(all)) {
    if (name === generation) continue
    const identity = await readGeneration(name, { request: context.send, prefix: context.prefix })
    // Its rebuild has begun, but has not stored yet which generation it follows.
    if (identity === undefined && all.building === name) {
      throw new CommandError(
        `${name} was just begun: continue it (npx commission projection rebuild), or drop it first`,
      )
    }
    if (identity?.follows !== generation) continue
    const from = all.independentFrom[name]
    const positions = await positionsOf(identity, context)
    if (from !== undefined && positions.every((position, partition) => position >= (from[partition] ?? 0))) continue
    throw new CommandError(`${name} takes over what ${generation} parked: drop ${name} first, or make it live`)
  }
}

const without = (generation: string, now: Generations): Generations => ({
  ...withoutComparisons(generation, now),
  independentFrom: Object.fromEntries(Object.entries(now.independentFrom).filter(([name]) => name !== generation)),
  active: now.active.filter(name => name !== generation),
  building: now.building === generation ? null : now.building,
  previous: now.previous === generation ? null : now.previous,
})

/**
 * Waits until projectors and rebuilds have stopped writing: the consumer group has no members, projectors had time to
 * notice, and no position has changed for a while. The last check covers projectors of another group or an older
 * version. A process that was suspended all this time finds no index to write to, and ends that stream. The time is
 * that of the waits themselves: a clock that is set meanwhile, or a pause of this process, makes none of them shorter.
 */
export const waitUntilNobodyWrites = async (
  generation: string,
  partitions: number,
  group: string,
  admin: Admin,
  { send, prefix, sleep, say }: KafkaContext,
  advice = 'drop it again',
): Promise<void> => {
  const ids = Array.from({ length: partitions }, (_, partition) => positionId(generation, partition))
  // Where nothing is published, only the times change.
  const docs = [...ids, timesId(generation)].map(id => controlAddress(prefix, id))
  const readPositions = async (): Promise<string> =>
    JSON.stringify(
      (await getEach(docs, part => multiGet(send, part))).map(document => (document.found ? document._source : null)),
    )
  let seen = await readPositions()
  let waited = 0
  let quietSince = 0
  say(`waiting until no projector keeps ${generation} up any more`)
  for (;;) {
    await sleep(QUIET_POLL_MS)
    waited += QUIET_POLL_MS
    const found = await readPositions()
    if (found !== seen) quietSince = waited
    seen = found
    const { groups } = await withRight('Describe', `group ${group}`, admin.describeGroups([group]))
    const members = groups[0]?.members.length ?? 0
    if (members === 0 && waited >= PROJECTOR_STOP_MS && waited - quietSince >= QUIET_MS) return
    if (waited <= DROP_WAIT_MS) continue
    if (members > 0) throw new CommandError(`${members} projectors still keep ${generation} up: ${advice} later`)
    const who = 'a projector of another KAFKA_GROUP_ID, or a rebuild of an older version'
    throw new CommandError(`somebody still writes to ${generation} (${who}): stop that, and ${advice}`)
  }
}
