/** `npm run projection -- rebuild`: makes a generation beside the live one, or goes on with one that was begun. */
import { changeGenerations } from '../../projector/generations.ts'
import { prepareGeneration, readGeneration } from '../../projector/prepare.ts'
import { eventsOptions } from '../../projector/projector.ts'
import { rebuild as makeGeneration, type RebuildContext, type RebuildProgress } from '../../projector/rebuild.ts'
import { assertSameSource, describeSource, fetchEnds } from '../../projector/source.ts'
import type { KafkaContext } from '../context.ts'
import { type ExitCode, exitCodes } from '../failures.ts'
import { connectAdmin } from '../kafka.ts'
import { REBUILD_TOLD_MS } from '../limits.ts'
import { identityOf, positionsOf, readAll } from './generations.ts'

export type RebuildOptions = { readonly maxRate: number; readonly json: boolean }

export type RebuildSteps = KafkaContext &
  Pick<RebuildContext, 'kafkaHeard' | 'patience' | 'signal'> & {
    readonly groupId: string
    readonly shards: number
    /** Shows how far it is, over and over in one place; undefined where nobody looks at a terminal. */
    readonly draw: ((line: string) => void) | undefined
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
