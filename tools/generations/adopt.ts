/**
 * `commission projection adopt`: takes over indices that were restored from a snapshot, and removes documents that no
 * log stands behind.
 *
 * A snapshot may hold a position without its documents, because projectors wrote while it was taken. So `adopt` sets
 * every position back to the first record. Projectors then read the topics again, write missing documents, and stop if
 * a document contradicts the log. Readers get 503 until a partition has reached the end that its topic has now, and the
 * position that they may have seen. A topic that lost its last records ends before that position: answers would lack
 * records that readers saw. The command names the partition. `adopt` can be interrupted and repeated: it writes the ids
 * of the indices last.
 * The results of `verify` go: when all is read again, decisions may be others.
 *
 * Documents at and after the stored positions are removed first (`leftovers/`), also if no index was replaced: a broker
 * that lost its last records can have others at their offsets. If the topic has not what a stored position names,
 * documents before it are of another log, too: then all go that are read again. Before that go the past positions after
 * those that are read again, and at the end the balances from there on, so that nothing leads back to either. If no
 * index was replaced, all balances go.
 */

import type { Admin } from 'kafkajs'
import { KEY_RULES_VERSION } from '../../core/ledger/index.ts'
import {
  assertSameSource,
  connectAdmin,
  describeSource,
  type Ends,
  fetchEnds,
  type GenerationBody,
  readLog,
  withRight,
} from '../../core/log/index.ts'
import {
  type DocumentAnswer,
  type PastPositions,
  readIndexIds,
  readRecordableIds,
  readShardIds,
} from '../../core/store/index.ts'
import {
  API_KEYS_GENERATION,
  type GenerationDocument,
  generationId,
  type PositionDocument,
  positionId,
  type TimesDocument,
  timesId,
} from '../../schemas/stored/documents.ts'
import { layoutOf } from '../../schemas/stored/layout.ts'
import { lostAmong, type ShardIds } from '../../schemas/stored/shard-ids.ts'
import type { ClusterContext, KafkaContext } from '../context.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { removeBalances, removeLeftovers } from '../leftovers/remove-leftovers.ts'
import { firstToRemove, keepAsWritten, readAllWritten } from '../leftovers/written.ts'
import { refuseWithoutFollowed } from './check-parked.ts'
import { assertItsSource, isInTopic, refuseBeforeGrown } from './compare-positions.ts'
import { forgetComparisons } from './compared.ts'
import { waitUntilNobodyWrites } from './drop.ts'
import {
  changeStored,
  forgetPastPositions,
  namesOf,
  positionDocumentsOf,
  readAll,
  readStored,
  recordedIdentityOf,
  replaceStored,
  sayWaits,
  skipBadSpare,
  writableOf,
} from './generations.ts'

export const adopt = async (
  { json }: { readonly json: boolean },
  context: ClusterContext,
  groupId: string,
): Promise<ExitCode> => {
  const adopted = await takeOver(fromFirstRecord, context, groupId)
  if (json) context.out(`${JSON.stringify({ adopted: adopted.map(({ generation }) => generation) })}\n`)
  return exitCodes.done
}

/** Where a generation is read again from: by partition, as it was at `time`. Without them from the first record. */
export type Restart = {
  readonly said: string
  readonly time?: number
  readonly positions?: PastPositions['partitions']
}

/**
 * @param lost a shard that lost documents, without a restore
 * @param replaced indices of other ids than recorded
 */
export type RestartOf = (
  identity: GenerationBody,
  lost: string | undefined,
  replaced: readonly string[],
) => Promise<Restart>

const fromFirstRecord = async (): Promise<Restart> => ({ said: 'from the first record' })

export type TakenOver = Restart & { readonly generation: string }

/**
 * Takes over all generations whose indices were replaced, and the API keys.
 * @param restartOf called before any change. If it throws a CommandError or a StopError for the live generation, the
 *   command ends without a change. For a spare generation, that generation is skipped.
 */
export const takeOver = async (
  restartOf: RestartOf,
  context: ClusterContext,
  groupId: string,
): Promise<readonly TakenOver[]> => {
  const { topics, say } = context
  await using stack = new AsyncDisposableStack()
  const admin = await connectAdmin(context.kafka, stack)
  const generations = await readAll(context)
  await refuseBeforeGrown(generations, context)
  const names = await writableOf([API_KEYS_GENERATION, ...namesOf(generations)], generations.live, context)
  const topicOf = ({ generation }: GenerationBody): string =>
    topics[generation === API_KEYS_GENERATION ? 'api-keys' : 'events']
  /**
   * Returns the first offset of each partition whose documents go. Without `restart`, no position goes back, and a
   * topic that is not the one of a position is left to the projector.
   * @param positions read before: the ends may grow
   * @throws CommandError if the topic is not the one of the positions from which a generation is read again
   */
  const firstToRemoveOf = async (
    identity: GenerationBody,
    positions: Positions,
    restart: Restart | undefined,
    tell: (line: string) => void,
  ): Promise<readonly number[]> => {
    const topic = topicOf(identity)
    const written = await readAllWritten(identity, context)
    const cluster = await context.openCluster(topic)
    stack.defer(cluster.disconnect)
    const log = readLog(cluster, topic)
    const ends = await fetchEnds(admin, topic)
    const from: number[] = []
    for (const [partition, position] of positions.entries()) {
      if (restart === undefined || (await isInTopic(partition, position, log, ends, context.sleep))) {
        const isOfLog = (last: LastRecord): Promise<boolean> =>
          isInTopic(partition, { position: last.offset + 1, last }, log, ends, context.sleep)
        from.push(await firstToRemove(identity.generation, position, written[partition], isOfLog))
        continue
      }
      const past = startOf(restart, partition)
      const what = `partition ${partition} of ${topic} is not what ${identity.generation} has read to offset ${position.position}`
      if (!(await isInTopic(partition, past, log, ends, context.sleep)))
        throw new CommandError(`${what}, nor to ${past.position}`)
      const valid = identity.generation === API_KEYS_GENERATION ? `. ${REVOKE_AGAIN}` : ''
      tell(`${what}: all documents from offset ${past.position} on are removed${valid}`)
      from.push(past.position)
    }
    return from
  }
  /** @param before the positions that were checked. Absent: those that the removal reads first */
  const remove = async (
    identity: GenerationBody,
    before?: Positions,
    restart?: Restart,
    beforeRemoving = async (): Promise<void> => undefined,
  ): Promise<Removed> => {
    const { generation, partitions } = identity
    const group = `${groupId}-${generation}`
    const wait = () => waitUntilNobodyWrites(generation, partitions, group, admin, context, 'run the same again')
    let checked = before
    let first: readonly number[] = []
    const from = async (positions: Positions): Promise<readonly number[]> => {
      checked ??= positions
      for (const [partition, now] of positions.entries()) assertAsChecked(generation, now, checked[partition])
      first = await firstToRemoveOf(identity, positions, restart, () => undefined)
      return first
    }
    const removal = { ...identity, from, keepsWritten: true, beforeRemoving, waitUntilNobodyWrites: wait } as const
    return { isRemoved: await removeLeftovers(removal, context), from: first }
  }
  const replaced: Replaced[] = []
  // Checks everything before it changes anything.
  for (const name of names) {
    const check = async (): Promise<Replaced | undefined> => {
      const found = await checkIndices(name, restartOf, context)
      if (found === undefined) return undefined
      const topic = topicOf(found.identity)
      assertSameSource(found.identity, await describeSource(admin, topic))
      assertReached(found.identity, found.restart, await fetchEnds(admin, topic))
      const positions = await positionDocumentsOf(found.identity, context)
      await firstToRemoveOf(found.identity, positions, found.restart, say)
      return { ...found, positions }
    }
    const found = await skipBadSpare(name, generations.live, check, context)
    if (found !== undefined) replaced.push(found)
  }
  for (const { stored, identity, ids, shards, restart, positions } of followedFirst(replaced)) {
    // Before documents go or positions are set back: if this run is interrupted, no rewind may go back less far.
    const forget = () => forgetPastPositions(identity.generation, context, restart.time)
    const { from: removedFrom } = await remove(identity, positions, restart, forget)
    await forget()
    const times = await readTimes(identity, context)
    for (const [partition, { last }] of (await positionDocumentsOf(identity, context)).entries()) {
      const isLeft = last !== null && last.offset < (removedFrom[partition] ?? 0)
      if (isLeft) await keepAsWritten(identity.generation, partition, last, context)
    }
    for (const { partition, end } of await fetchEnds(admin, topicOf(identity))) {
      const from = startOf(restart, partition)
      await readAgain(identity, partition, from, end, times[partition]?.taken_back ?? 0, context)
    }
    // Before the ids, which end this run: `verify` refuses until all is read again.
    await forgetComparisons(identity.generation, context)
    // Only now: from here on no projector makes balances before it has read all again.
    const starts = positions.map((_, partition) => startOf(restart, partition).position)
    await removeBalances(identity, starts, context)
    const none: TimesDocument = { kind: 'times', body: { partitions: {} } }
    if (Object.keys(times).length > 0)
      await changeStored<TimesDocument>(timesId(identity.generation), () => none, context)
    const { lost: _, shards: before, ...kept } = identity
    // Again: a shard may have started, or have lost documents, since the check.
    const found = await readRecordableIds(Object.keys(ids), { ...context, request: context.send }, before === undefined)
    const lost = lostAmong({ ...before, ...shards }, found, index => identity.indices?.[index] === ids[index])
    if (lost !== undefined) throw new CommandError(`the shard ${lost} was lost meanwhile: run the same again`)
    const body = { ...kept, indices: ids, ...(found && { shards: found }) }
    const document: GenerationDocument = { kind: 'generation', body }
    if (!(await replaceStored(generationId(identity.generation), stored, document, context))) {
      const what = `${identity.generation} was changed by another command meanwhile`
      throw new CommandError(`${what}: let it end, and run the same again`)
    }
    say(`${identity.generation} is adopted: projectors read it again ${restart.said}, and the API serves it after that`)
    if (identity.generation === API_KEYS_GENERATION && identity.rules_version < KEY_RULES_VERSION) say(UPGRADE_AGAIN)
  }
  if (replaced.length === 0) {
    for (const name of [API_KEYS_GENERATION, generations.live]) await assertItsSource(name, topics, admin, context)
    const removeLost = async (identity: GenerationBody): Promise<boolean> => {
      // All: nothing says whether one is wrong, and they are always made again.
      const hadBalances = await removeBalances(identity, Array(identity.partitions).fill(0), context)
      if (hadBalances) say(`${identity.generation}: all balances of totals are removed, and projectors make them again`)
      return (await remove(identity)).isRemoved || hadBalances
    }
    const removed = await removeFromAll(names, generations.live, removeLost, admin, context, groupId)
    say(`no index was replaced: nothing ${removed ? 'else ' : ''}is changed`)
  }
  await sayWaits(generations.live, await fetchEnds(admin, topics.events), context)
  return replaced.map(({ identity: { generation }, restart }) => ({ generation, ...restart }))
}

type LastRecord = NonNullable<PositionDocument['body']['last']>

type Positions = readonly PositionDocument['body'][]

/** The first offset of each partition whose documents went. */
type Removed = { readonly isRemoved: boolean; readonly from: readonly number[] }

/** @throws CommandError if a projector has published since the positions were read: its documents must stay */
const assertAsChecked = (
  generation: string,
  now: PositionDocument['body'],
  checked: PositionDocument['body'] | undefined,
): void => {
  if (now.position === checked?.position && now.serve_from === checked.serve_from) return
  throw new CommandError(
    `positions of ${generation} were changed meanwhile: stop all projectors, and run the same again`,
  )
}

/**
 * Looks for documents that no log has in all generations that no projector writes. Under a projector there always are
 * documents that it has written and not published yet.
 * @returns whether something was removed
 */
const removeFromAll = async (
  names: readonly string[],
  live: string,
  remove: (identity: GenerationBody) => Promise<boolean>,
  admin: Admin,
  context: KafkaContext,
  groupId: string,
): Promise<boolean> => {
  let hasRemoved = false
  for (const name of names) {
    const { groups } = await withRight(
      'Describe',
      `group ${groupId}-${name}`,
      admin.describeGroups([`${groupId}-${name}`]),
    )
    if ((groups[0]?.members.length ?? 0) > 0) {
      context.say(`projectors keep ${name} up: documents that no log has are looked for only while none does`)
      continue
    }
    const removing = async (): Promise<boolean> => remove(await recordedIdentityOf(name, context))
    if (await skipBadSpare(name, live, removing, context)) hasRemoved = true
  }
  return hasRemoved
}

type Replaced = {
  readonly identity: GenerationBody
  /** The document of the generation, with the version that was read. */
  readonly stored: DocumentAnswer<GenerationDocument>
  readonly ids: Record<string, string>
  /** As they were found by the check. */
  readonly shards: ShardIds | undefined
  readonly restart: Restart
  readonly positions: Positions
}

const FIRST_RECORD = { position: 0, last: null, at: 0 }
const startOf = ({ positions }: Restart, partition: number) => positions?.[partition] ?? FIRST_RECORD

/** A follower decides by what the other one has parked: nobody may project it before that one begins anew. */
const followedFirst = (replaced: readonly Replaced[]): readonly Replaced[] => {
  const follows = new Map(replaced.map(({ identity }) => [identity.generation, identity.follows]))
  const depthOf = (name: string): number => {
    const followed = follows.get(name)
    return followed === undefined ? 0 : 1 + depthOf(followed)
  }
  return replaced.toSorted((a, b) => depthOf(a.identity.generation) - depthOf(b.identity.generation))
}

const REVOKE_AGAIN = 'Keys that only lost records had revoked are valid again: publish their revocations again'

const UPGRADE_AGAIN =
  'version 1 of the rules decides about API keys. If upgrade-keys has run since the snapshot: before you start projectors, run npx commission projection upgrade-keys --from OFFSET, with the offset that it printed'

/** Returns undefined if no index of the generation was replaced. */
const checkIndices = async (
  name: string,
  restartOf: RestartOf,
  context: KafkaContext,
): Promise<Omit<Replaced, 'positions'> | undefined> => {
  const { send: request, prefix } = context
  const stored = await readStored<GenerationDocument>(generationId(name), context)
  if (stored === undefined) throw new CommandError(`there is no generation ${name} (npx commission projection list)`)
  const identity = stored._source.body
  const ids = await readIndexIds(layoutOf(prefix, identity).indices, { request, prefix })
  const shards = await readShardIds(Object.keys(ids), { request, prefix }, identity.shards === undefined)
  const isSame = (index: string): boolean => identity.indices?.[index] === ids[index]
  const lost = lostAmong(identity.shards, shards, isSame) ?? identity.lost
  const replaced = Object.keys(ids).filter(index => !isSame(index))
  if (replaced.length === 0 && lost === undefined) return undefined
  const restart = name === API_KEYS_GENERATION ? await fromFirstRecord() : await restartOf(identity, lost, replaced)
  await refuseWithoutFollowed(identity, restart, context)
  return { identity, stored, ids, shards, restart }
}

/** @throws CommandError if the topic ends before a position: it is not the projected one, or has lost records */
const assertReached = ({ generation, topic }: GenerationBody, { positions = [] }: Restart, ends: Ends): void => {
  for (const { partition, end } of ends) {
    const { position } = positions[partition] ?? FIRST_RECORD
    if (position <= end) continue
    throw new CommandError(`partition ${partition} of ${topic} ends at ${end}, before ${position} of ${generation}`)
  }
}

const readTimes = async ({ generation }: GenerationBody, context: KafkaContext) =>
  (await readStored<TimesDocument>(timesId(generation), context))?._source.body.partitions ?? {}

/** A running projector notices that the position went back, and stops. */
const readAgain = async (
  { generation }: GenerationBody,
  partition: number,
  from: PastPositions['partitions'][number],
  end: number,
  timesTakenBack: number,
  context: KafkaContext,
): Promise<void> => {
  const id = positionId(generation, partition)
  const { position, last, at } = from
  const isThere = await changeStored<PositionDocument>(
    id,
    ({ body: before }) => {
      // Readers may have seen more than the topic has now. A run that was interrupted has set the position back. Of API
      // keys, each start of a projector sets `serve_from` anew.
      const seen = Math.max(before.position, generation === API_KEYS_GENERATION ? 0 : (before.serve_from ?? 0))
      const serve_from = Math.max(end, seen)
      // A higher count makes API processes discard the times that they read before.
      const taken_back = Math.max(before.taken_back ?? 0, timesTakenBack) + 1
      // A projector that still reads the cluster before stops because of `source`.
      const source = before.source === undefined ? {} : { source: before.source }
      return { kind: 'position', body: { position, last, at, time: 0, serve_from, taken_back, ...source } }
    },
    context,
  )
  if (isThere) return
  throw new CommandError(`${id} is not there: somebody drops ${generation}. Let it end, and run the same again`)
}
