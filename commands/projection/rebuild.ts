/** `npm run projection -- rebuild`: makes a generation beside the live one, or goes on with one that was begun. */
import { changeGenerations } from '../../projector/generations.ts'
import { prepareGeneration, readGeneration } from '../../projector/prepare.ts'
import { eventsOptions } from '../../projector/projector.ts'
import { rebuild as makeGeneration, type RebuildContext, type RebuildProgress } from '../../projector/rebuild.ts'
import { RULES_VERSION } from '../../projector/rules/rules.ts'
import { assertSameSource, describeSource, fetchEnds, type Identity } from '../../projector/source.ts'
import type { KafkaContext } from '../context.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { connectAdmin } from '../kafka.ts'
import { REBUILD_TOLD_MS } from '../limits.ts'
import { identityOf, positionsOf, readAll } from './generations.ts'

export type RebuildOptions = { readonly maxRate: number; readonly json: boolean }

export type RebuildSteps = KafkaContext &
  Pick<RebuildContext, 'kafkaHeard' | 'patience' | 'signal' | 'wrapSteps'> & {
    readonly groupId: string
    readonly shards: number
    /** Another than that of this program, where a test has other rules. */
    readonly rulesVersion?: number
    /** Shows how far it is, over and over in one place; undefined where nobody looks at a terminal. */
    readonly draw: ((line: string) => void) | undefined
  }

export const rebuild = async ({ maxRate, json }: RebuildOptions, context: RebuildSteps): Promise<ExitCode> => {
  const { send, prefix, shards, say, signal, now, groupId, topics, rulesVersion = RULES_VERSION } = context
  await using stack = new AsyncDisposableStack()
  const admin = await connectAdmin(context.kafka, stack)
  const steps = { request: send, prefix, shards, rulesVersion }
  const trusted = await identityOf((await readAll(context)).live, context)
  const source = await describeSource(admin, topics.events)
  assertSameSource(trusted, source)
  const free = await firstFree(context)
  const { building } = await changeGenerations(steps, before => ({ ...before, building: before.building ?? free }))
  const generation = building ?? free
  const ends = () => fetchEnds(admin, topics.events)
  const follows = followedBy(rulesVersion, trusted)
  const identity = await prepareGeneration(generation, source, await ends(), true, steps, follows)
  if (identity.follows !== follows) {
    throw new CommandError(`${generation} was begun while another generation was live: drop it first`)
  }
  say(generation === free ? `making ${generation}` : `going on with ${generation}`)

  const began = now()
  let first: number | undefined
  let told = now()
  const onProgress = ({ done, total }: RebuildProgress): void => {
    first ??= done
    const rate = ((done - first) * 1_000) / Math.max(1, now() - began)
    const left = rate > 0 ? `, ${Math.ceil((total - done) / rate)} s left` : ''
    const line = `${done} of ${total} records, ${rate.toFixed(0)} a second${left}`
    if (context.draw) context.draw(line)
    else if (now() - told >= REBUILD_TOLD_MS) {
      told = now()
      say(line)
    }
  }
  const ended = await makeGeneration(eventsOptions(identity, groupId, prefix), maxRate, {
    kafkaHeard: context.kafkaHeard,
    admin,
    elasticsearch: { send },
    patience: context.patience,
    now,
    say,
    onProgress,
    positions: async () => (await positionsOf(identity, context)).map(({ position }) => position),
    ends: async () =>
      follows === undefined
        ? ends()
        : (await positionsOf(trusted, context)).map(({ position }, partition) => ({ partition, end: position })),
    signal,
    ...(context.wrapSteps && { wrapSteps: context.wrapSteps }),
  })
  if (ended === 'stopped') {
    say(`stopped; the same command goes on with ${generation}`)
    return exitCodes.failed
  }
  const { live } = await changeGenerations(steps, before => ({
    ...before,
    kept: [...new Set([...before.kept, generation])],
    building: before.building === generation ? null : before.building,
  }))
  if (json) context.out(`${JSON.stringify({ generation, live })}\n`)
  say(`${generation} has caught up. Next: npm run projection -- verify ${live} ${generation}`)
  return exitCodes.done
}

/** What a generation of these rules follows: the live one, unless that one decides by the very same rules and no others. */
const followedBy = (rulesVersion: number, live: Identity): string | undefined =>
  live.rules_version === rulesVersion && live.follows === undefined ? undefined : live.generation

/** The first name that no generation has. */
const firstFree = async ({ send, prefix }: KafkaContext): Promise<string> => {
  for (let number = 2; ; number++) {
    if ((await readGeneration(`g${number}`, { request: send, prefix })) === undefined) return `g${number}`
  }
}
