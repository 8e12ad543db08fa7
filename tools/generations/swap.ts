/**
 * Makes another generation live, by a single write that every API process sees with its next request. Promises: the new
 * generation has reached what the live one has published, also before a restore, so that no reader's position goes
 * back; `verify` found it equal to the live one, or the operator forces the swap with a reason. A rollback under equal
 * rules needs a reason only if `verify` found a difference. A generation with texts that were redacted since needs one.
 */

import type { GenerationBody } from '../../core/log/index.ts'
import { changeGenerations, finishSwap, type Generations } from '../../core/store/index.ts'
import type { CommandContext } from '../context.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { NEAR_POLL_MS, POLL_MS, SWAP_NEAR_MS, SWAP_WAIT_MS } from '../limits.ts'
import { lagOf } from '../live.ts'
import { decideAlike, REFUSED_UNFORCED, refuseUnparked } from './check-parked.ts'
import { assertComparedEqual, assertNotDifferent, copyAt } from './compared.ts'
import {
  assertOfOneSource,
  identityOf,
  positionDocumentsOf,
  positionsOf,
  readAll,
  recordedIdentityOf,
  seenPositionsOf,
} from './generations.ts'

export type SwapOptions = { readonly generation: string; readonly force: string | undefined; readonly json: boolean }

export const swap = async ({ generation, force, json }: SwapOptions, context: CommandContext): Promise<ExitCode> => {
  const now = await readAll(context)
  if (now.live === generation) {
    context.say(`${generation} is live already`)
    printLive(now, json, context)
    return exitCodes.done
  }
  if (!now.active.includes(generation)) {
    const why = now.building === generation ? 'is still being made' : 'is not kept up'
    throw new CommandError(`${generation} ${why} (npx commission projection list)`)
  }
  await makeLive(generation, now.live, force, false, context)
  context.say(
    `${generation} is live${force === undefined ? '' : ` (forced: ${force})`}; ${now.live} is kept up, to go back to`,
  )
  printLive({ live: generation, previous: now.live }, json, context)
  return exitCodes.done
}

/** Repeated, it changes nothing: a second run would put the generation back that it left. */
export const rollback = async (
  { force, json }: Omit<SwapOptions, 'generation'>,
  context: CommandContext,
): Promise<ExitCode> => {
  const { live, previous, active } = await readAll(context)
  if (previous === null) throw new CommandError('there is nothing to go back to: no generation was live before')
  // Later generations have higher numbers. A run whose answer was lost, or of somebody else, may have gone back before.
  if (numberIn(previous) > numberIn(live)) {
    context.say(`${live} is live already. To make ${previous} live: npx commission projection swap ${previous}`)
    printLive({ live, previous }, json, context)
    return exitCodes.done
  }
  if (!active.includes(previous)) throw new CommandError(`${previous} is no longer kept up`)
  await makeLive(previous, live, force, true, context)
  context.say(`${previous} is live again; ${live} is kept up`)
  printLive({ live: previous, previous: live }, json, context)
  return exitCodes.done
}

const numberIn = (generation: string): number => Number(generation.slice(1))

const printLive = (
  { live, previous }: Pick<Generations, 'live' | 'previous'>,
  json: boolean,
  { out }: CommandContext,
): void => {
  if (json) out(`${JSON.stringify({ live, previous })}\n`)
}

/**
 * @param isBack whether it was live before: then it need not have been compared
 * @throws CommandError if somebody else changed the live generation meanwhile
 */
const makeLive = async (
  generation: string,
  before: string,
  force: string | undefined,
  isBack: boolean,
  context: CommandContext,
): Promise<void> => {
  const steps = { request: context.send, prefix: context.prefix }
  const refusal = force === undefined ? REFUSED_UNFORCED : undefined
  const identity = await identityOf(generation, refusal, context)
  const liveIdentity = await recordedIdentityOf(before, context)
  // `adopt --archive` may have skipped it: no projector of the present topics keeps it up.
  assertOfOneSource(identity, liveIdentity)
  refuseOpenTexts(identity, force, context)
  const { independentFrom } = await readAll(context)
  const isFollowing = identity.follows !== undefined && independentFrom[generation] === undefined
  if (isFollowing && identity.follows !== before) {
    const what = `${generation} takes over what ${identity.follows} parked, which is not live any more`
    throw new CommandError(`${what}: drop it, and make one beside ${before}`)
  }
  const refuseUnequal = async (): Promise<(now: Generations) => void> => {
    if (force !== undefined || (isBack && !decideAlike(identity, liveIdentity))) return () => undefined
    if (isBack) return now => assertNotDifferent(now, generation, before)
    const [ours, theirs] = [await sideNow(identity, context), await sideNow(liveIdentity, context)]
    const reached = ours.positions.map(({ position }) => position)
    return now => assertComparedEqual(now, ours.side, theirs.side, reached)
  }
  // Check before the long waits, and again inside the change: `verify` may store another result meanwhile.
  // A rollback first names the parked records.
  if (!isBack) (await refuseUnequal())(await readAll(context))
  await warnOfPublished(liveIdentity, generation, context)
  await finishSwap(steps)
  let checked = await refuseUnparked(identity, liveIdentity, undefined, force, context)
  const near = isFollowing ? SWAP_NEAR_MS : 0
  await waitUntilReached(identity, liveIdentity, near, context)
  checked = await refuseUnparked(identity, liveIdentity, checked.to, force, context)
  const refuseThen = await refuseUnequal()
  // The check above took time, in which the live generation has published more. So check until nothing is undecided.
  // The last check is just before the change. A follower parks all that the live generation parks: its undecided
  // records do not count.
  for (const until = context.elapsed() + SWAP_WAIT_MS; ; await context.sleep(NEAR_POLL_MS)) {
    await waitUntilReached(identity, liveIdentity, near, context)
    checked = await refuseUnparked(identity, liveIdentity, checked.to, force, context)
    if (checked.undecided === 0 || isFollowing || force !== undefined) break
    if (context.elapsed() <= until) continue
    const what = `${before} parks records all the time that ${generation} has not decided yet`
    throw new CommandError(`${what}: run the same again when it parks fewer, or --force with a reason`)
  }
  await changeGenerations(steps, now => {
    if (now.live === generation) return now
    if (now.live !== before || !now.active.includes(generation)) {
      throw new CommandError(`meanwhile ${now.live} was made live, or ${generation} was dropped: nothing is changed`)
    }
    refuseThen(now)
    return { ...now, live: generation, previous: before, minPositions: null }
  })
  await finishSwap(steps)
}

const sideNow = async (identity: GenerationBody, context: CommandContext) => {
  const positions = await positionDocumentsOf(identity, context)
  return { positions, side: [identity, copyAt(identity, positions)] as const }
}

/**
 * Also if the live one was made before a redaction: it can lack the texts of an earlier one.
 * @throws CommandError without `force` if readers would see texts that were redacted
 */
const refuseOpenTexts = (
  { generation, redacted_to }: GenerationBody,
  force: string | undefined,
  { say }: CommandContext,
): void => {
  if (redacted_to === undefined) return
  const what = `${generation} was made before the log was redacted, and has the open texts`
  if (force === undefined) throw new CommandError(`${what}: rebuild makes one without, or --force with a reason`)
  say(`${what} (forced: ${force})`)
}

/**
 * A generation whose log was redacted has the open texts. If an event is published again with these texts, this
 * generation decides it otherwise than one that was made from the redacted log.
 */
const warnOfPublished = async (live: GenerationBody, generation: string, context: CommandContext): Promise<void> => {
  const { redacted_to: ends, topic } = live
  if (ends === undefined) return
  const positions = await positionsOf(live, context)
  const since = positions.flatMap((position, partition) => {
    const end = ends[partition] ?? 0
    return position > end ? [`${topic}:${partition} from offset ${end} to ${position - 1}`] : []
  })
  if (since.length === 0) return
  const what = `records were published after the redaction, before this swap: ${since.join(', ')}`
  const next = `${live.generation} and ${generation} may have decided repeated ones differently`
  context.say(`warning: ${what}. ${next}: npx commission projection diff ${live.generation} ${generation}`)
}

/**
 * Waits until a generation has reached every position of the live one, and its own before a restore. The live positions
 * are at most `near` milliseconds old: 0 reads them before each comparison. A follower always lags a little, so it
 * needs some.
 */
const waitUntilReached = async (
  identity: GenerationBody,
  liveIdentity: GenerationBody,
  near: number,
  context: CommandContext,
): Promise<void> => {
  const { generation } = identity
  const before = liveIdentity.generation
  const readWanted = async (): Promise<number[]> => {
    const own = await seenPositionsOf(identity, context)
    const live = await seenPositionsOf(liveIdentity, context)
    return live.map((position, partition) => Math.max(position, own[partition] ?? 0))
  }
  let wanted = await readWanted()
  let since = context.elapsed()
  for (const until = since + SWAP_WAIT_MS; ; ) {
    const reached = await positionsOf(identity, context)
    const lag = lagOf(wanted, reached)
    if (lag === 0) return
    if (context.elapsed() > until) {
      const isAtLive = lagOf(await positionsOf(liveIdentity, context), reached) === 0
      const what = isAtLive ? 'what readers have seen before a restore' : before
      throw new CommandError(`${generation} is ${lag} records behind ${what}: is a projector running?`)
    }
    await context.sleep(near === 0 ? POLL_MS : NEAR_POLL_MS)
    // Read the live positions first: the generation may pass them between the two reads, never fall behind them.
    if (context.elapsed() - since >= near) {
      since = context.elapsed()
      wanted = await readWanted()
    }
  }
}
