/** `commission projection rebuild`: makes a generation beside the live one, or continues one that was begun. */

import { RULES_VERSION } from '../../core/ledger/index.ts'
import {
  assertSameSource,
  connectAdmin,
  describeSource,
  fetchEnds,
  type GenerationBody,
  type KafkaAccess,
} from '../../core/log/index.ts'
import { type RebuildContext, rebuildGeneration, streamOptions } from '../../core/projection/index.ts'
import { StopError } from '../../core/runtime/index.ts'
import {
  changeGenerations,
  type Generations,
  indicesOf,
  keepTemplate,
  layoutOfNew,
  prepareGeneration,
  readGeneration,
} from '../../core/store/index.ts'
import type { KafkaContext } from '../context.ts'
import { assertOwnIndices } from '../documents/shards.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { positionsOf, readAll, recordedIdentityOf } from './generations.ts'
import { type ProgressSteps, reportProgress } from './progress.ts'
import { findRemains } from './remains.ts'

export type RebuildOptions = {
  readonly maxRate: number
  /** Makes none if there is one as `findSpare` returns it: the Job of the chart. */
  readonly unlessSpare?: boolean
  readonly json: boolean
}

export type RebuildSteps = KafkaContext &
  Pick<KafkaAccess, 'kafkaWithConnectHook' | 'openLog'> &
  Pick<RebuildContext, 'retryOptions' | 'signal' | 'testHooks'> & {
    readonly groupId: string
    readonly shards: number
    readonly replicas?: number | undefined
    readonly routingPartitionSize?: number | undefined
    /** Other than that of new generations, in a test. */
    readonly layout?: 1 | 2 | 3
    /** Other than this program's, if a test has other rules. */
    readonly rulesVersion?: number
    readonly draw: ProgressSteps['draw']
    /** Set if the topic was grown from that of the live generation: it has the same records. */
    readonly grown?: true
  }

export const rebuild = async (
  { maxRate, unlessSpare = false, json }: RebuildOptions,
  context: RebuildSteps,
): Promise<ExitCode> => {
  const { send, prefix, say, signal, now, groupId, topics, rulesVersion = RULES_VERSION } = context
  const spare = unlessSpare ? await findSpare(context) : undefined
  if (spare !== undefined) {
    say(`${spare} is complete, of these rules and this layout, and beside the live generation: nothing is made`)
    if (json) context.out(`${JSON.stringify({ generation: spare, live: (await readAll(context)).live })}\n`)
    return exitCodes.done
  }
  const { shards, replicas, routingPartitionSize, layout } = context
  const steps = { request: send, prefix, shards, replicas, routingPartitionSize, layout, rulesVersion }
  const trusted = await recordedIdentityOf((await readAll(context)).live, context)
  const likeNew = indicesOf({ generation: trusted.generation, ...layoutOfNew(context) }, steps)
  const unguarded = await keepTemplate(Object.keys(likeNew), steps, 'monitor')
  if (unguarded instanceof StopError) throw unguarded
  await using stack = new AsyncDisposableStack()
  const admin = await connectAdmin(context.kafka, stack)
  // The parked records of a generation that is followed have the offsets of its topic.
  const follows = context.grown ? undefined : followedBy(rulesVersion, trusted)
  // Only a warning: nobody reads it yet, and `swap` refuses while a shard of the parked records cannot be compared.
  if (follows !== undefined) await assertOwnIndices(trusted, undefined, context)
  const source = await describeSource(admin, topics.events)
  if (context.grown !== true) assertSameSource(trusted, source)
  // Remains of generations may have higher numbers than `highest`: older versions did not store it.
  const free = await firstFree(context)
  let isNew = false
  const { building } = await changeGenerations(steps, before => {
    if (before.live !== trusted.generation) {
      throw new CommandError(`meanwhile ${before.live} was made live: nothing is changed; run the same again`)
    }
    isNew = before.building === null
    const highest = Math.max(before.highest + 1, free)
    return isNew ? { ...before, building: `g${highest}`, highest } : before
  })
  if (building === null) throw new Error('a rebuild without a generation')
  const generation = building
  /** If somebody has dropped the generation, reports the drop as the cause of the failure. */
  const unlessDropped = async (error: unknown): Promise<never> => {
    assertNamed(generation, await readAll(context))
    throw error
  }
  const identity = await prepareGeneration(
    generation,
    source,
    await fetchEnds(admin, topics.events),
    steps,
    follows,
  ).catch(unlessDropped)
  if (identity.follows !== follows) {
    throw new CommandError(`${generation} was begun while another generation was live: drop it first`)
  }
  say(isNew ? `making ${generation}` : `continuing with ${generation}`)

  const ended = await rebuildGeneration(streamOptions(identity, groupId, prefix), maxRate, {
    from: { kafkaWithConnectHook: context.kafkaWithConnectHook, openLog: context.openLog, admin },
    elasticsearch: { send },
    retryOptions: context.retryOptions,
    now,
    elapsed: context.elapsed,
    say,
    onProgress: reportProgress(context),
    positions: async () => {
      assertNamed(generation, await readAll(context))
      return positionsOf(identity, context)
    },
    ...(follows !== undefined && {
      ends: async () => (await positionsOf(trusted, context)).map((end, partition) => ({ partition, end })),
    }),
    signal,
    ...(context.testHooks && { testHooks: context.testHooks }),
  }).catch(unlessDropped)
  if (ended === 'stopped') {
    say(`stopped; the same command continues with ${generation}`)
    return exitCodes.failed
  }
  const { live } = await changeGenerations(steps, before => {
    assertNamed(generation, before)
    return {
      ...before,
      active: [...new Set([...before.active, generation])],
      building: before.building === generation ? null : before.building,
    }
  })
  if (json) context.out(`${JSON.stringify({ generation, live })}\n`)
  const next = context.grown ? '' : `. Next: npx commission projection verify ${live} ${generation}`
  say(`${generation} has caught up${next}`)
  return exitCodes.done
}

/**
 * Returns a complete generation of these rules, this layout and this topic beside the live one, unless one was begun
 * after it. Without this layout, payouts cannot be searched by deal after the swap, or an organization is in another
 * number of shards than ELASTICSEARCH_ROUTING_PARTITION_SIZE says.
 */
const findSpare = async (context: RebuildSteps): Promise<string | undefined> => {
  const { live, active, building } = await readAll(context)
  if (building !== null) return undefined
  const { layout, routing_partition_size } = layoutOfNew(context)
  for (const name of active) {
    if (name === live) continue
    const found = await readGeneration(name, { request: context.send, prefix: context.prefix })
    if (found?.rules_version !== (context.rulesVersion ?? RULES_VERSION) || found.layout !== layout) continue
    if (found.routing_partition_size !== routing_partition_size) continue
    if (found.topic === context.topics.events && found.redacted_to === undefined) return name
  }
  return undefined
}

/** @throws CommandError if the generation is neither being built nor kept up to date */
const assertNamed = (generation: string, { building, active }: Generations): void => {
  if (building === generation || active.includes(generation)) return
  const what = `${generation} was dropped meanwhile, and is not kept up`
  throw new CommandError(`${what}: npx commission projection list shows whether something of it is left`)
}

/** Returns the generation that a new one must follow: the live one, unless both decide by the same rules alone. */
const followedBy = (rulesVersion: number, live: GenerationBody): string | undefined =>
  live.rules_version === rulesVersion && live.follows === undefined ? undefined : live.generation

/** A number above those of all generations and their remains: no remains may count as part of the new generation. */
const firstFree = async (context: KafkaContext): Promise<number> => {
  const numbers = [...(await findRemains(context)).keys()].map(name => Number(/^g(\d{1,9})$/.exec(name)?.[1] ?? 1))
  return Math.max(1, ...numbers) + 1
}
