/** `npm run projection -- rebuild`: makes a generation beside the live one, or goes on with one that was begun. */
import { changeGenerations } from '../../projector/generations.ts'
import { prepareGeneration, readGeneration } from '../../projector/prepare.ts'
import { eventsOptions } from '../../projector/projector.ts'
import { rebuild as makeGeneration, type RebuildContext } from '../../projector/rebuild.ts'
import { assertSameSource, describeSource, fetchEnds } from '../../projector/source.ts'
import type { KafkaContext } from '../context.ts'
import { type ExitCode, exitCodes } from '../failures.ts'
import { connectAdmin } from '../kafka.ts'
import { identityOf, positionsOf, readAll } from './generations.ts'
import { type ProgressSteps, tellProgress } from './progress.ts'

export type RebuildOptions = { readonly maxRate: number; readonly json: boolean }

export type RebuildSteps = KafkaContext &
  Pick<RebuildContext, 'kafkaHeard' | 'patience' | 'signal'> & {
    readonly groupId: string
    readonly shards: number
    readonly draw: ProgressSteps['draw']
  }

export const rebuild = async ({ maxRate, json }: RebuildOptions, context: RebuildSteps): Promise<ExitCode> => {
  const { send, prefix, shards, say, signal, now, groupId, topics } = context
  await using stack = new AsyncDisposableStack()
  const admin = await connectAdmin(context.kafka, stack)
  const steps = { request: send, prefix, shards }
  const { live: trusted } = await readAll(context)
  const source = await describeSource(admin, topics.events)
  assertSameSource(await identityOf(trusted, context), source)
  const free = await firstFree(context)
  const { building } = await changeGenerations(steps, before => ({ ...before, building: before.building ?? free }))
  const generation = building ?? free
  const identity = await prepareGeneration(generation, source, await fetchEnds(admin, topics.events), true, steps)
  say(generation === free ? `making ${generation}` : `going on with ${generation}`)

  const ended = await makeGeneration(eventsOptions(identity, groupId, prefix), maxRate, {
    kafkaHeard: context.kafkaHeard,
    admin,
    elasticsearch: { send },
    patience: context.patience,
    now,
    say,
    onProgress: tellProgress(context),
    positions: async () => (await positionsOf(identity, context)).map(({ position }) => position),
    signal,
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

/** The first name that no generation has. */
const firstFree = async ({ send, prefix }: KafkaContext): Promise<string> => {
  for (let number = 2; ; number++) {
    if ((await readGeneration(`g${number}`, { request: send, prefix })) === undefined) return `g${number}`
  }
}
