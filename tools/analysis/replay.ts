/**
 * `commission projection replay`: projects the log from its first record up to a point into a sandbox. Uses the
 * projector's own code, for all organizations or one, under the present rules or others. Reads only Kafka or an
 * archive; writes only under the prefix of sandboxes.
 */

import { differingField, type GenerationBody } from '../../core/log/index.ts'
import { rebuildGeneration, streamOptions } from '../../core/projection/index.ts'
import { StopError } from '../../core/runtime/index.ts'
import {
  type Ask,
  documentPath,
  ifVersion,
  prepareControl,
  prepareGeneration,
  readControl,
  readGeneration,
  readGenerations,
  type Send,
} from '../../core/store/index.ts'
import { controlIndexOf } from '../../schemas/stored/documents.ts'
import { layoutOf } from '../../schemas/stored/layout.ts'
import { SANDBOX_NAMES_ID, type SandboxNamesDocument } from '../../schemas/stored/sandboxes.ts'
import type { CommandContext } from '../context.ts'
import { withRetries } from '../documents/read-retries.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { positionsOf, recordsBefore } from '../generations/generations.ts'
import { reportProgress } from '../generations/progress.ts'
import type { RebuildSteps } from '../generations/rebuild.ts'
import { findRemains, isWhole } from '../generations/remains.ts'
import {
  assertMadeWith,
  assertNotAnew,
  describeUntil,
  differenceOfFollower,
  inSandbox,
  sandboxLabel,
} from '../generations/sandboxes.ts'
import { QUIET_MS } from '../limits.ts'
import { assertLogReaches, boundsOf, requestedUntil, type Until } from './replay-bounds.ts'
import type { OpenSource, ReplaySource } from './replay-source.ts'
import { loadRules, type RulesModule } from './rules-module.ts'

export type ReplayOptions = {
  /** By default the first free name. */
  readonly name: string | undefined
  readonly until: Until
  readonly org: string | undefined
  /** Path of a module. */
  readonly rules: string | undefined
  /** An archive: a directory, or s3://BUCKET/PREFIX. By default the log is read from Kafka. */
  readonly fromArchive: string | undefined
  readonly maxRate: number
  readonly json: boolean
}

/** The inputs of a replay beside its log. */
export type ReplaySteps = CommandContext &
  Pick<RebuildSteps, 'retryOptions' | 'signal' | 'shards' | 'replicas' | 'routingPartitionSize' | 'layout' | 'draw'>

export const replay = async (options: ReplayOptions, given: ReplaySteps, openSource: OpenSource): Promise<ExitCode> => {
  const { say, out, now } = given
  const module = options.rules === undefined ? undefined : await loadRules(options.rules)
  if (options.until && 'time' in options.until && options.until.time > now()) {
    throw new CommandError('that time is in the future')
  }
  await using stack = new AsyncDisposableStack()
  const time = options.until && 'time' in options.until ? options.until.time : undefined
  const source = await openSource({ org: options.org, time }, stack)
  await sayIfFollower(source, given)
  const context = await withRetries(given, () => inSandbox(given))
  const identity = await openSandbox(options, module, source, context)
  const { generation, sandbox } = identity
  if (sandbox === undefined) throw new Error('a sandbox does not say what it was made with')

  const reached = (): Promise<number[]> => positionsOf(identity, context)
  const isReplayed = (positions: readonly number[]): boolean =>
    positions.every((position, partition) => position === sandbox.bounds[partition])
  const report = (how: string): ExitCode => {
    const records = recordsBefore(sandbox.bounds)
    const { org, bounds } = sandbox
    if (options.json) out(`${JSON.stringify({ sandbox: sandboxLabel(generation), records, org, bounds })}\n`)
    say(`${sandboxLabel(generation)} ${how}: ${records} records, up to ${describeUntil(sandbox)}`)
    return exitCodes.done
  }
  const assertOurs = async (): Promise<void> => {
    if (await isGone(identity, context)) throw new CommandError(`${sandboxLabel(generation)} was dropped meanwhile`)
    await assertNotAnew(identity, context)
  }
  if (isReplayed(await withRetries(context, reached))) {
    await withRetries(context, assertOurs)
    return report('exists already')
  }

  const { bounds, org } = sandbox
  const stream = {
    ...streamOptions(identity, source.groupId, context.prefix),
    bounds,
    ...(org !== null && { org }),
    ...(module && { rules: module.table }),
  }
  /** After a failure: if somebody has dropped the sandbox, reports this as the cause. */
  const unlessDropped = async (error: unknown): Promise<never> => {
    await assertOurs()
    throw error
  }
  const ended = await rebuildGeneration(stream, options.maxRate, {
    from: source.from,
    elasticsearch: { send: sendAfterGaps(() => assertNotAnew(identity, context), given) },
    retryOptions: context.retryOptions,
    now,
    elapsed: context.elapsed,
    say,
    onProgress: reportProgress(context),
    positions: reached,
    signal: context.signal,
  }).catch(unlessDropped)
  if (ended === 'caught up') {
    await assertOurs()
    return report('is complete')
  }
  say(`stopped; the same command with --name ${generation} continues`)
  return exitCodes.failed
}

/** Says if the live generation of this log follows another one. A replay needs no right to read the live one. */
const sayIfFollower = async (
  { identity: source }: ReplaySource,
  { send, sleep, prefix, say }: ReplaySteps,
): Promise<void> => {
  const request: Ask = asked => withRetries({ sleep }, () => send(asked))
  const readLive = async (): Promise<GenerationBody | undefined> => {
    const generations = await readGenerations({ request, prefix })
    return generations && readGeneration(generations.live, { request, prefix })
  }
  const live = await readLive().catch((error: unknown) => {
    if (error instanceof StopError) return undefined
    throw error
  })
  const why = live && differingField(live, source) === undefined ? differenceOfFollower(live) : undefined
  if (why !== undefined) say(why)
}

/**
 * Calls `check` before the first request after a gap: this process may have been suspended (Ctrl-Z), while somebody
 * dropped the sandbox, and made another one of its name. `drop` watches a replay for as long before it deletes.
 */
export const sendAfterGaps = (
  check: () => Promise<void>,
  { send, elapsed }: Pick<CommandContext, 'send' | 'elapsed'>,
) => {
  let last = elapsed()
  const sendChecked: Send = async (request, signal) => {
    if (elapsed() - last >= QUIET_MS) await check()
    last = elapsed()
    return send(request, signal)
  }
  return sendChecked
}

/** Whether the sandbox was deleted, wholly or in part, since it was opened. `drop` deletes its indices first. */
const isGone = async (identity: GenerationBody, context: CommandContext): Promise<boolean> => {
  const found = (await findRemains(context)).get(identity.generation)
  return found === undefined || !isWhole(found, identity.partitions, layoutOf(context.prefix, identity))
}

/** Continues a sandbox that was begun with the same options, or makes a new one. */
const openSandbox = async (
  { name, until, org }: ReplayOptions,
  module: RulesModule | undefined,
  { identity: source, ends, firstLater, assertOver }: ReplaySource,
  context: ReplaySteps,
): Promise<GenerationBody> => {
  const { send, sleep, prefix, shards, replicas, routingPartitionSize, layout, say } = context
  // A new index may answer 503 for a moment. Each of these requests may be repeated.
  const request: Ask = asked => withRetries({ sleep }, () => send(asked))
  const steps = { request, prefix, shards, replicas, routingPartitionSize, layout }
  await prepareControl(steps)
  const asked = requestedUntil(until, org, source.partitions)
  const wanted = { org: org ?? null, until: asked, rules: module?.identity ?? null }
  const names = async () => (await withRetries({ sleep }, () => findRemains(context))).keys()
  const generation = await takeName(name, { ...steps, names })
  const before = await readGeneration(generation, steps)
  if (before) assertMadeWith(before, wanted)
  if (before === undefined) assertOver()
  const bounds = before?.sandbox?.bounds ?? [...boundsOf(asked, org, ends, firstLater)]
  assertLogReaches(bounds, ends, sandboxLabel(generation))
  const made = { ...source, sandbox: { ...wanted, bounds } }
  const identity = await prepareGeneration(generation, made, ends, steps).catch((error: unknown) => {
    if (!(error instanceof StopError && error.code === 'index_missing')) throw error
    const advice = `npx commission projection drop ${sandboxLabel(generation)} removes what is left`
    throw new CommandError(`${sandboxLabel(generation)} is only partly dropped, or is being dropped: ${advice}`)
  })
  // Another process may have begun a sandbox of this name at the same time.
  assertMadeWith(identity, wanted)
  say(
    before
      ? `continuing with ${sandboxLabel(generation)}`
      : `making ${sandboxLabel(generation)}, in ${prefix}-${generation}-*`,
  )
  return identity
}

type NameSteps = Parameters<typeof readGeneration>[1] & {
  /** The names of all sandboxes of which something is there. */
  readonly names: () => Promise<Iterable<string>>
}
/** Returns the given name, or one that no replay had before: a dropped one may be in a command, a page or a process. */
export const takeName = async (given: string | undefined, { names, ...steps }: NameSteps): Promise<string> => {
  const control = controlIndexOf(steps.prefix)
  for (;;) {
    const taken = await readControl<SandboxNamesDocument>(SANDBOX_NAMES_ID, steps)
    const before = taken?._source.body.highest ?? 0
    if (given !== undefined && numberIn(given) <= before) return given
    const highest = given === undefined ? Math.max(before, ...Array.from(await names(), numberIn)) + 1 : numberIn(given)
    const { status } = await steps.request({
      method: 'PUT',
      path: taken ? documentPath(control, SANDBOX_NAMES_ID) : `/${control}/_create/${SANDBOX_NAMES_ID}`,
      ...(taken && { query: ifVersion(taken) }),
      body: { kind: 'sandbox-names', body: { highest } } satisfies SandboxNamesDocument,
    })
    if (status === 200 || status === 201) return given ?? `s${highest}`
    // 409: another replay took a name at the same time, or the answer to our earlier attempt was lost.
    if (status !== 409) throw new CommandError(`${control} cannot be written: Elasticsearch answers ${status}`)
  }
}

/** The number in a name as replays choose them; 0 in another name, and if the number is too large to count on. */
const numberIn = (name: string): number => Number(/^s(\d{1,15})$/.exec(name)?.[1] ?? 0)
