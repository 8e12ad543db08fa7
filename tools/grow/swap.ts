/**
 * Makes the generation of the new topic live.
 * In: both generations, and the copy of the topic. Out: the swap, in one write that every API process sees with its
 *   next request.
 * Promises: the new generation has everything that readers have seen of the old one, which nobody writes any more. Both
 *   were compared. Projection-Time never goes back. Records that come to the old topic after the swap are found.
 * Can go wrong: a publisher or a projector of the old topic does not stop, or a transaction stays open in it: it is
 *   named, and nothing is changed.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Admin } from 'kafkajs'
import {
  assertSameSource,
  describeSource,
  fetchEndOffsets,
  type GenerationBody,
  type LogReader,
  type Source,
  withRight,
} from '../../core/log/index.ts'
import { changeGenerations, formerTopicsIn } from '../../core/store/index.ts'
import { type OpenTransactions, textOfOpen } from '../archive/open-transactions.ts'
import { putTimesBack } from '../archive/record-times.ts'
import type { KafkaContext } from '../context.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { waitUntilNobodyWrites } from '../generations/drop.ts'
import { positionDocumentsOf, positionsOf, recordsBefore, servedPositionsOf } from '../generations/generations.ts'
import {
  DIFFERENCES_SHOWN,
  GROW_NEWS_MS,
  GROW_WAIT_MS,
  POLL_MS,
  QUIET_MS,
  QUIET_POLL_MS,
  SWAP_UNCOMPARED_PART,
  SWAP_UNCOMPARED_RECORDS,
  SWAP_WAIT_MS,
} from '../limits.ts'
import { lagOf } from '../live.ts'
import { compareGenerations } from './compare.ts'
import type { CopiedTo, Copy } from './copy.ts'
import { printLate } from './late-records.ts'

export type Growing = {
  readonly live: GenerationBody
  /** The generation of the new topic. */
  readonly spare: GenerationBody
  /** The old topic. */
  readonly source: Source
  /** Of the old topic. */
  readonly openTransactions: OpenTransactions
  readonly copy: Copy
}

type SwapSteps = KafkaContext & { readonly groupId: string; readonly signal: AbortSignal }

/** @param oldLog the old topic, read by nobody else */
export const swapGrown = async (
  growing: Growing,
  oldLog: LogReader,
  json: boolean,
  admin: Admin,
  context: SwapSteps,
): Promise<ExitCode> => {
  const { live, spare, source, copy } = growing
  const { say } = context
  let compared = copy.reached()
  if (!(await areEqual(growing, compared, context))) return exitCodes.failed
  say(`Now stop all publishers of ${source.topic}, then its projectors. Those of ${spare.topic} and the API go on`)
  const before = await waitUntilStopped(growing, oldLog, json, admin, context)
  const group = `${context.groupId}-${live.generation}`
  await waitUntilNobodyWrites(live.generation, live.partitions, group, admin, context, 'run the same again')
  await copy.run()
  const cut = copy.reached()
  await refuseLate(growing, oldLog, before.from, json, admin, context)
  const since = recordsBefore(cut.to) - recordsBefore(compared.to)
  if (since > Math.max(SWAP_UNCOMPARED_RECORDS, recordsBefore(compared.to) / SWAP_UNCOMPARED_PART)) {
    compared = cut
    if (!(await areEqual(growing, cut, context))) return exitCodes.failed
  }
  await waitUntilAt(spare, cut.to, context)
  await waitForTimes(growing, context)
  await putTimesBack(admin, spare.topic)
  await refuseLate(growing, oldLog, cut.from, json, admin, context)
  await refusePublishedEarly(growing, cut, admin)
  const reached = await positionsOf(spare, context)
  const { topic, cluster_id, topic_id } = source
  const grown = { topic, cluster_id, ...(topic_id !== undefined && { topic_id }), ends: cut.from }
  await changeGenerations({ request: context.send, prefix: context.prefix }, now => {
    const former = formerTopicsIn(now)
    // An earlier attempt succeeded, and its response was lost.
    if (now.live === spare.generation && isDeepStrictEqual(former[0], grown)) return now
    if (now.live !== live.generation || !now.active.includes(spare.generation)) {
      const what = `meanwhile ${now.live} was made live, or ${spare.generation} was dropped`
      throw new CommandError(`${what}: nothing is changed`)
    }
    refuseOtherRules(spare, live)
    // A topic whose name is used again is gone.
    const before = former.filter(one => one.topic !== topic && one.topic !== spare.topic)
    return {
      ...now,
      live: spare.generation,
      previous: live.generation,
      minPositions: reached,
      independentFrom: { [spare.generation]: reached, ...now.independentFrom },
      grown: { ...grown, ...(before.length > 0 && { before }) },
    }
  })
  say(`${spare.generation} is live. Next: start publishers on ${spare.topic}, and set KAFKA_EVENTS_TOPIC everywhere`)
  say(`Later: npx commission grow --to ${spare.topic} names whoever still publishes to ${topic}`)
  return exitCodes.done
}

/**
 * Records since the comparison are not compared. Both generations decide them alike only under equal rules, and if the
 * new one takes over nothing that another one parked.
 * @throws CommandError
 */
export const refuseOtherRules = (spare: GenerationBody, live: GenerationBody): void => {
  const { generation, topic, follows } = spare
  if (spare.rules_version === live.rules_version && follows === undefined) return
  const versions = `version ${spare.rules_version} of the rules, and ${live.generation} version ${live.rules_version}`
  const what = follows === undefined ? `has ${versions}` : `takes over what ${follows} parked`
  const next = `npx commission projection drop ${generation}, then npx commission grow --to ${topic}`
  throw new CommandError(`${generation} of ${topic} ${what}. Nothing is changed. Next: ${next}`)
}

/** Compares both generations as of the same records. */
const areEqual = async ({ live, spare }: Growing, { from, to }: CopiedTo, context: KafkaContext): Promise<boolean> => {
  const { say, out } = context
  await waitUntilAt(live, from, context)
  await waitUntilAt(spare, to, context)
  // After a restore readers may have seen more than the old topic has: the new one would lack it, too.
  await servedPositionsOf(live, context)
  say(`comparing ${live.generation} and ${spare.generation}`)
  const sides = [
    { identity: live, positions: from },
    { identity: spare, positions: to },
  ] as const
  const { organizations, differing } = await compareGenerations(...sides, context)
  for (const org of differing.slice(0, DIFFERENCES_SHOWN)) out(`${org === '' ? '(no organization)' : org}: DIFFERENT\n`)
  if (differing.length === 0) say(`equal: ${organizations} organizations`)
  else say(`${differing.length} of ${organizations} organizations differ: nothing is changed`)
  return differing.length === 0
}

/** @throws CommandError if the generation does not come nearer */
const waitUntilAt = async (
  identity: GenerationBody,
  wanted: readonly number[],
  context: KafkaContext,
): Promise<void> => {
  let nearest = Number.POSITIVE_INFINITY
  for (let since = context.elapsed(); ; await context.sleep(POLL_MS)) {
    const lag = lagOf(wanted, await positionsOf(identity, context))
    if (lag === 0) return
    if (lag < nearest) [nearest, since] = [lag, context.elapsed()]
    if (context.elapsed() - since <= SWAP_WAIT_MS) continue
    const { generation, topic } = identity
    throw new CommandError(`${generation} is ${lag} records behind: is a projector of ${topic} running?`)
  }
}

/**
 * Copies what comes, until for a while nothing has come, no transaction of the old topic has been open, and none of its
 * projectors has run.
 * @returns what was reached before nothing came any more
 */
const waitUntilStopped = async (
  { live, source, openTransactions, copy }: Growing,
  oldLog: LogReader,
  json: boolean,
  admin: Admin,
  context: SwapSteps,
): Promise<CopiedTo> => {
  const { say, sleep, elapsed, groupId } = context
  const group = `${groupId}-${live.generation}`
  const until = elapsed() + GROW_WAIT_MS
  let [quietSince, saidAt, cameAt] = [elapsed(), elapsed(), Number.NEGATIVE_INFINITY]
  let before = copy.reached()
  for (;;) {
    const reached = copy.reached()
    const came = await copy.run()
    const open = await openTransactions()
    const { groups } = await withRight('Describe', `group ${group}`, admin.describeGroups([group]))
    const members = groups[0]?.members.length ?? 0
    if (came > 0 || open.length > 0 || members > 0) quietSince = elapsed()
    if (came > 0) [before, cameAt] = [reached, elapsed()]
    if (elapsed() - quietSince >= QUIET_MS) return copy.reached()
    const waitsFor = [
      ...(came > 0 ? [`${came} records came to ${source.topic}`] : []),
      ...(open.length > 0 ? [textOfOpen(source.topic, open)] : []),
      ...(members > 0 ? [`projectors keep up ${live.generation}: ${members}`] : []),
    ]
    if (elapsed() > until) {
      // Publishers that stopped before are not named: the command waits for something else.
      if (elapsed() - cameAt < QUIET_MS) await printLate(oldLog, before.from, json, context)
      throw new CommandError(`${waitsFor.join(', ') || 'records come'}: stop them, and run the same again`)
    }
    if (waitsFor.length > 0 && elapsed() - saidAt >= GROW_NEWS_MS) {
      saidAt = elapsed()
      say(`waiting: ${waitsFor.join(', ')}`)
    }
    await sleep(QUIET_POLL_MS)
  }
}

/**
 * @throws CommandError if something was published to the old topic since, also if it cannot be read; StopError if it is
 *   another topic now, or has more partitions
 */
const refuseLate = async (
  { live: { generation }, source, openTransactions }: Growing,
  oldLog: LogReader,
  from: readonly number[],
  json: boolean,
  admin: Admin,
  context: KafkaContext,
): Promise<void> => {
  const { topic } = source
  assertSameSource({ ...source, generation }, await describeSource(admin, topic))
  // First: what is committed meanwhile is found below.
  const open = await openTransactions()
  if (open.length > 0) throw new CommandError(`${textOfOpen(topic, open)}: end them, and run the same again`)
  const ends = await fetchEndOffsets(admin, topic)
  if (lagOf(ends, from) === 0) return
  const late = await printLate(oldLog, from, json, context, ends)
  if (late === 0) return
  throw new CommandError(`a publisher still publishes to ${topic} (above): stop it, and run the same again`)
}

/** @throws CommandError if something was published to the new topic; StopError if it is another one now */
const refusePublishedEarly = async ({ spare }: Growing, { to }: CopiedTo, admin: Admin): Promise<void> => {
  assertSameSource(spare, await describeSource(admin, spare.topic))
  if (lagOf(await fetchEndOffsets(admin, spare.topic), to) === 0) return
  throw new CommandError(`a publisher publishes to ${spare.topic} already: publishers begin there after the swap`)
}

/** Readers never see a Projection-Time go back. */
const waitForTimes = async ({ live, spare }: Growing, context: KafkaContext): Promise<void> => {
  const timesOf = async (identity: GenerationBody) =>
    (await positionDocumentsOf(identity, context)).map(({ time }) => time)
  const seen = Math.max(...(await timesOf(live)))
  for (const until = context.elapsed() + SWAP_WAIT_MS; ; await context.sleep(POLL_MS)) {
    if (Math.min(...(await timesOf(spare))) >= seen) return
    if (context.elapsed() <= until) continue
    throw new CommandError(
      `the times of ${spare.generation} are behind those of ${live.generation}: is its projector running?`,
    )
  }
}
