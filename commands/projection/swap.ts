/**
 * Which generation is live: another one is made so by a single write, which every API process sees with its next request. Promises: only
 * one that has reached what the live one has published, so that no reader's position goes back; only one that was found equal, unless it
 * is forced, with a reason.
 */
import { changeGenerations, type Generations } from '../../projector/generations.ts'
import type { CommandContext, KafkaContext } from '../context.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { connectAdmin } from '../kafka.ts'
import { DROP_WAIT_MS, LOOK_MS, SWAP_WAIT_MS } from '../limits.ts'
import { deleteGeneration, identityOf, positionsOf, readAll } from './generations.ts'

export type SwapOptions = { readonly generation: string; readonly force: string | undefined }
type Waiting = CommandContext & Pick<KafkaContext, 'sleep' | 'now'>

export const swap = async ({ generation, force }: SwapOptions, context: Waiting): Promise<ExitCode> => {
  const now = await readAll(context)
  if (now.live === generation) {
    context.say(`${generation} is live already`)
    return exitCodes.done
  }
  if (!now.kept.includes(generation)) {
    const why = now.building === generation ? 'is still being made' : 'is not kept up'
    throw new CommandError(`${generation} ${why} (npm run projection -- list)`)
  }
  if (force === undefined && now.verified[generation] !== now.live) {
    const how = `npm run projection -- verify ${now.live} ${generation}`
    throw new CommandError(`${generation} was not found equal to ${now.live}: ${how}, or --force with a reason`)
  }
  await makeLive(generation, now.live, context)
  context.say(
    `${generation} is live${force === undefined ? '' : ` (forced: ${force})`}; ${now.live} is kept up, to go back to`,
  )
  return exitCodes.done
}

export const rollback = async (context: Waiting): Promise<ExitCode> => {
  const { live, previous, kept } = await readAll(context)
  if (previous === null) throw new CommandError('there is nothing to go back to: no generation was live before')
  if (!kept.includes(previous)) throw new CommandError(`${previous} is no longer kept up`)
  await makeLive(previous, live, context)
  context.say(`${previous} is live again; ${live} is kept up`)
  return exitCodes.done
}

/** @throws CommandError when somebody else changed what is live meanwhile */
const makeLive = async (generation: string, before: string, context: Waiting): Promise<void> => {
  await untilAsFar(generation, before, context)
  await changeGenerations({ request: context.send, prefix: context.prefix }, now => {
    if (now.live === generation) return now
    if (now.live !== before || !now.kept.includes(generation)) {
      throw new CommandError(`meanwhile ${now.live} was made live, or ${generation} was dropped: nothing is changed`)
    }
    return { ...now, live: generation, previous: before }
  })
}

/** Waits until every position of one has reached that of the other, all at one look. */
const untilAsFar = async (generation: string, before: string, context: Waiting): Promise<void> => {
  const [identity, other] = [await identityOf(generation, context), await identityOf(before, context)]
  for (const until = context.now() + SWAP_WAIT_MS; ; ) {
    // The live one first: what it publishes between the two looks the other one may have, too.
    const wanted = await positionsOf(other, context)
    const reached = await positionsOf(identity, context)
    const behind = wanted.reduce(
      (sum, { position }, partition) => sum + Math.max(0, position - (reached[partition]?.position ?? 0)),
      0,
    )
    if (behind === 0) return
    if (context.now() > until) {
      throw new CommandError(`${generation} is ${behind} records behind ${before}: is a projector running?`)
    }
    await context.sleep(LOOK_MS)
  }
}

export const drop = async ({ generation }: { readonly generation: string }, context: KafkaContext, groupId: string) => {
  const { send, prefix, say } = context
  await using stack = new AsyncDisposableStack()
  const admin = await connectAdmin(context.kafka, stack)
  const identity = await identityOf(generation, context)
  await changeGenerations({ request: send, prefix }, now => without(generation, now))
  // A projector that still writes would find its indices gone, and end.
  const group = `${groupId}-${generation}`
  for (const until = context.now() + DROP_WAIT_MS; ; ) {
    const { groups } = await admin.describeGroups([group])
    const members = groups[0]?.members.length ?? 0
    if (members === 0) break
    if (context.now() > until)
      throw new CommandError(`${members} projectors still keep ${generation} up; drop it again later`)
    await context.sleep(LOOK_MS)
  }
  await deleteGeneration(identity, group, admin, context)
  say(`${generation} is dropped`)
  return exitCodes.done
}

/** @throws CommandError for the live one */
const without = (generation: string, now: Generations): Generations => {
  if (now.live === generation) throw new CommandError(`${generation} is live: it cannot be dropped`)
  const verified = Object.fromEntries(
    Object.entries(now.verified).filter(([name, other]) => name !== generation && other !== generation),
  )
  return {
    live: now.live,
    kept: now.kept.filter(name => name !== generation),
    building: now.building === generation ? null : now.building,
    previous: now.previous === generation ? null : now.previous,
    verified,
  }
}
