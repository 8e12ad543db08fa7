/**
 * Sandboxes: generations that analysts replay into. They have a prefix and a control index of their own: credentials
 * for that prefix alone cannot touch live indices. In arguments and output a sandbox is `sandbox:NAME`.
 */

import { isDeepStrictEqual } from 'node:util'
import type { Kafka } from 'kafkajs'
import { RULES_VERSION } from '../../core/ledger/index.ts'
import { connectAdmin, type GenerationBody, withRight } from '../../core/log/index.ts'
import { StopError } from '../../core/runtime/index.ts'
import { readGeneration } from '../../core/store/index.ts'
import { partitionOf } from '../../schemas/partition.ts'
import { LIVE_ID, type LiveDocument } from '../../schemas/stored/documents.ts'
import { layoutOf } from '../../schemas/stored/layout.ts'
import { type SandboxBody, sandboxPrefixOf } from '../../schemas/stored/sandboxes.ts'
import type { CommandContext } from '../context.ts'
import { assertOwnIndices } from '../documents/shards.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { QUIET_MS } from '../limits.ts'
import {
  deleteGeneration,
  identityOf,
  positionsOf,
  readAll,
  readStored,
  recordedIdentityOf,
  recordsBefore,
  recordsOf,
} from './generations.ts'
import { findRemains, isWhole } from './remains.ts'

const MARK = 'sandbox:'
export const sandboxLabel = (name: string): string => `${MARK}${name}`

/** The name of a sandbox; undefined for a generation. */
export const sandboxIn = (text: string): string | undefined =>
  text.startsWith(MARK) ? text.slice(MARK.length) : undefined

type Prefixed = Pick<CommandContext, 'send' | 'prefix'>

/** Switches to the prefix of the sandboxes; undefined if an installation has it: its generations are no sandboxes. */
export const sandboxesOf = async <Context extends Prefixed>(given: Context): Promise<Context | undefined> => {
  const context = { ...given, prefix: sandboxPrefixOf(given.prefix) }
  return (await readStored<LiveDocument>(LIVE_ID, context)) === undefined ? context : undefined
}

/** As `sandboxesOf`. @throws CommandError if an installation has the prefix of the sandboxes */
export const inSandbox = async <Context extends Prefixed>(given: Context): Promise<Context> => {
  const context = await sandboxesOf(given)
  if (context) return context
  const what = `${sandboxPrefixOf(given.prefix)} is the ELASTICSEARCH_INDEX_PREFIX of another installation`
  throw new CommandError(`${what}: ${given.prefix} has no sandboxes (docs/settings.md)`)
}

/**
 * Finds a generation or a sandbox, and the context with its prefix. Warns of a shard that cannot be compared.
 * @throws as `identityOf`
 */
export const findAny = async <Context extends CommandContext>(
  text: string,
  context: Context,
): Promise<{ readonly identity: GenerationBody; readonly context: Context }> => {
  const name = sandboxIn(text)
  if (name === undefined) return { identity: await identityOf(text, undefined, context), context }
  const sandboxContext = await inSandbox(context)
  const identity = await recordedIdentityOf(name, sandboxContext).catch((error: unknown) => {
    if (error instanceof CommandError || (error instanceof StopError && error.code === 'index_missing'))
      return undefined
    throw error
  })
  if (identity === undefined) throw noSandbox(name)
  await assertOwnIndices(identity, undefined, sandboxContext)
  return { identity, context: sandboxContext }
}

/**
 * As `findAny`, for commands that answer from its records: half of a replay or of a rebuild is no answer about money.
 * @param org the only organization that is asked for; by default all
 * @throws CommandError if it is not complete yet, or is a sandbox of another organization
 */
export const findWhole = async <Context extends CommandContext>(
  text: string,
  given: Context,
  org?: string,
): ReturnType<typeof findAny<Context>> => {
  const found = await findAny(text, given)
  const { identity, context } = found
  const { partitions, sandbox } = identity
  if (sandbox === undefined) {
    if (sandboxIn(text) !== undefined) throw new CommandError(`${text} does not say up to where it goes: make it anew`)
    if ((await readAll(context)).building !== text) return found
    throw new CommandError(`${text} is not complete yet: npx commission projection rebuild continues it`)
  }
  if (org !== undefined && (sandbox.org ?? org) !== org) throw onlyOf(text, sandbox.org, org)
  const only = org === undefined ? undefined : partitionOf(org, partitions)
  const positions = await positionsOf(identity, context)
  const isReached = (bound: number, partition: number): boolean =>
    (only ?? partition) !== partition || (positions[partition] ?? 0) >= bound
  if (sandbox.bounds.every(isReached)) return found
  const records = `${recordsBefore(positions)} records of ${recordsBefore(sandbox.bounds)}`
  throw new CommandError(`${text} has ${records}, and is not complete yet: the replay that made it continues it`)
}

/** The refusal of an organization that a sandbox does not have. */
export const onlyOf = (sandbox: string, org: string | null, asked: string): CommandError =>
  new CommandError(`${sandbox} has only ${org}, and nothing of ${asked}`)

const noSandbox = (name: string): CommandError =>
  new CommandError(`there is no ${sandboxLabel(name)} (npx commission projection list --sandbox)`)

/**
 * A replay that was suspended for long can find another sandbox of its name, and would write into it. Warns of a shard
 * that cannot be compared.
 * @throws CommandError if the sandbox was dropped or made anew since it was opened; StopError `index_replaced`
 */
export const assertNotAnew = async (
  identity: GenerationBody,
  context: Pick<CommandContext, 'send' | 'prefix' | 'say'>,
): Promise<void> => {
  const label = sandboxLabel(identity.generation)
  const now = await readGeneration(identity.generation, { request: context.send, prefix: context.prefix })
  if (now === undefined) throw new CommandError(`${label} was dropped meanwhile`)
  if (!isDeepStrictEqual(now.indices, identity.indices)) throw new CommandError(`${label} was made anew meanwhile`)
  await assertOwnIndices(identity, undefined, context)
}

/** Why a sandbox can differ from a generation under any rules; undefined if the generation follows none. */
export const differenceOfFollower = ({ generation, follows }: GenerationBody): string | undefined =>
  follows &&
  `${generation} keeps parked what ${follows} parked, and a replay decides these records by its own rules: they, and records that refer to them, can differ in diff`

/** @throws CommandError if a sandbox of that name was made with other options */
export const assertMadeWith = (
  { generation, rules_version, sandbox }: GenerationBody,
  wanted: Omit<SandboxBody, 'bounds'>,
): void => {
  const refusal = (how: string): CommandError => {
    const what = `${sandboxLabel(generation)} is there already, ${how}`
    return new CommandError(`${what}: use the same options or another --name, or drop it`)
  }
  if (rules_version !== RULES_VERSION)
    throw refusal(`made by version ${rules_version} of the rules; this program has ${RULES_VERSION}`)
  if (sandbox === undefined) throw refusal('without the options that it was made with')
  if (sandbox.org !== wanted.org) throw refusal(`made of ${sandbox.org ?? 'all organizations'}`)
  if (JSON.stringify(sandbox.until) !== JSON.stringify(wanted.until))
    throw refusal(`made up to ${describeUntil(sandbox)}`)
  if (sandbox.rules?.sha256 === wanted.rules?.sha256) return
  if (sandbox.rules === null) throw refusal('made with the rules of this program')
  const another = sandbox.rules.name === wanted.rules?.name ? 'another text of ' : ''
  throw refusal(`made with ${another}${sandbox.rules.name}`)
}

export const describeUntil = ({ until, bounds }: Pick<SandboxBody, 'until' | 'bounds'>): string => {
  if (until === null) return `the end of the topic then: ${bounds.join(', ')}`
  if ('time' in until) return until.time
  return until.offsets.map(([partition, offset]) => `${partition}:${offset}`).join(', ')
}

/** Says which rules decided a generation; of a sandbox also up to where, and whether it has one organization only. */
export const describeMade = ({ rules_version, sandbox }: GenerationBody): string => {
  const rules = sandbox?.rules ? ` with ${sandbox.rules.name} (SHA-256 ${sandbox.rules.sha256})` : ''
  return [
    `rules version ${rules_version}${rules}`,
    ...(sandbox?.org ? [`only ${sandbox.org}`] : []),
    ...(sandbox ? [`up to ${describeUntil(sandbox)}`] : []),
  ].join('; ')
}

export const listSandboxes = async ({ json }: { readonly json: boolean }, given: CommandContext): Promise<ExitCode> => {
  const context = await inSandbox(given)
  for (const [name, found] of await findRemains(context)) {
    const identity = await readGeneration(name, { request: context.send, prefix: context.prefix })
    if (identity?.sandbox === undefined || !isWhole(found, identity.partitions, layoutOf(context.prefix, identity))) {
      const advice = `npx commission projection drop ${sandboxLabel(name)} removes it`
      if (json) context.out(`${JSON.stringify({ sandbox: sandboxLabel(name), whole: false })}\n`)
      else context.out(`${sandboxLabel(name)}  not whole; ${advice}\n`)
      continue
    }
    const { generation, topic, rules_version, sandbox } = identity
    const records = await recordsOf(name, found.positions, context)
    const wanted = recordsBefore(sandbox.bounds)
    if (json) {
      const { org, until, bounds, rules } = sandbox
      const made = {
        sandbox: sandboxLabel(generation),
        topic,
        rules_version,
        records,
        of: wanted,
        org,
        until,
        bounds,
        rules,
      }
      context.out(`${JSON.stringify(made)}\n`)
      continue
    }
    const made = describeMade(identity)
    context.out(`${sandboxLabel(generation)}  ${records} of ${wanted} records of ${topic}; ${made}\n`)
  }
  return exitCodes.done
}

/** @param inKafka of the group that a replay from Kafka joins; undefined without settings for Kafka */
export const dropSandbox = async (
  { name, json }: { readonly name: string; readonly json: boolean },
  given: CommandContext,
  inKafka: { readonly kafka: Kafka; readonly groupId: string } | undefined,
): Promise<ExitCode> => {
  const context = await inSandbox(given)
  const found = (await findRemains(context)).get(name)
  if (found === undefined) throw noSandbox(name)
  const refusal = new CommandError(`${sandboxLabel(name)} is being made; stop that first`)
  const group = sandboxGroup(inKafka?.groupId ?? '', name)
  await using stack = new AsyncDisposableStack()
  const admin = inKafka && (await connectAdmin(inKafka.kafka, stack))
  const described = admin && (await withRight('Describe', `group ${group}`, admin.describeGroups([group])))
  const groups = described?.groups ?? []
  if ((groups[0]?.members.length ?? 0) > 0) throw refusal
  // A replay from an archive is in no group: its positions show that it runs.
  if (await isMoving(name, found.positions, context)) throw refusal
  await deleteGeneration(name, group, admin, context)
  context.say(`${sandboxLabel(name)} is dropped`)
  if (json) context.out(`${JSON.stringify({ dropped: sandboxLabel(name) })}\n`)
  return exitCodes.done
}

/** Whether a replay still adds to a sandbox that is not complete. */
const isMoving = async (name: string, partitions: readonly number[], context: CommandContext): Promise<boolean> => {
  const identity = await readGeneration(name, { request: context.send, prefix: context.prefix })
  const before = await recordsOf(name, partitions, context)
  if (identity?.sandbox === undefined || before >= recordsBefore(identity.sandbox.bounds)) return false
  await context.sleep(QUIET_MS)
  return (await recordsOf(name, partitions, context)) > before
}

/** The group id to which `streamOptions` appends the name of a sandbox. */
export const sandboxGroupPrefix = (groupId: string): string => `${groupId}-sandbox`
const sandboxGroup = (groupId: string, name: string): string => `${sandboxGroupPrefix(groupId)}-${name}`
