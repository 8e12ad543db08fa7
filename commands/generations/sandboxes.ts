/**
 * Sandboxes: generations that analysts replay into. They have a prefix and a control index of their own: credentials
 * for that prefix alone cannot touch live indices. In arguments and output a sandbox is `sandbox:NAME`.
 */
import { StopError } from '../../projector/failures.ts'
import { readGeneration } from '../../projector/generations/prepare.ts'
import type { Identity } from '../../projector/kafka/source.ts'
import { RULES_VERSION } from '../../projector/rules/rules.ts'
import { type SandboxBody, sandboxPrefixOf } from '../../schemas/stored/sandboxes.ts'
import type { CommandContext, KafkaContext } from '../context.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { connectAdmin } from '../kafka.ts'
import { deleteGeneration, identityOf, recordsOf } from './generations.ts'
import { findRemains, isWhole } from './remains.ts'

const MARK = 'sandbox:'
export const written = (name: string): string => `${MARK}${name}`

/** The name of a sandbox; undefined for a generation. */
export const sandboxIn = (text: string): string | undefined =>
  text.startsWith(MARK) ? text.slice(MARK.length) : undefined

/** Switches to the prefix of the sandboxes. */
export const inSandbox = <Context extends { readonly prefix: string }>(context: Context): Context => ({
  ...context,
  prefix: sandboxPrefixOf(context.prefix),
})

/** Finds a generation or a sandbox, and the context with its prefix. @throws CommandError if there is none */
export const findAny = async <Context extends CommandContext>(
  text: string,
  context: Context,
): Promise<{ readonly identity: Identity; readonly context: Context }> => {
  const name = sandboxIn(text)
  if (name === undefined) return { identity: await identityOf(text, context), context }
  const place = inSandbox(context)
  const identity = await identityOf(name, place).catch((error: unknown) => {
    if (error instanceof CommandError || (error instanceof StopError && error.code === 'index_missing'))
      return undefined
    throw error
  })
  if (identity === undefined) throw noSandbox(name)
  return { identity, context: place }
}

const noSandbox = (name: string): CommandError =>
  new CommandError(`there is no ${written(name)} (npm run projection -- list --sandbox)`)

/** @throws CommandError if a sandbox of that name was made with other options */
export const assertMadeWith = (
  { generation, rules_version, sandbox }: Identity,
  wanted: Omit<SandboxBody, 'bounds'>,
): void => {
  const refused = (how: string): CommandError => {
    const what = `${written(generation)} is there already, ${how}`
    return new CommandError(`${what}: use the same options or another --name, or drop it`)
  }
  if (rules_version !== RULES_VERSION)
    throw refused(`made by version ${rules_version} of the rules; this program has ${RULES_VERSION}`)
  if (sandbox === undefined) throw refused('without the options that it was made with')
  if (sandbox.org !== wanted.org) throw refused(`made of ${sandbox.org ?? 'all organizations'}`)
  if (JSON.stringify(sandbox.until) !== JSON.stringify(wanted.until))
    throw refused(`made up to ${untilInWords(sandbox)}`)
  if (sandbox.rules?.sha256 === wanted.rules?.sha256) return
  if (sandbox.rules === null) throw refused('made with the rules of this program')
  const another = sandbox.rules.name === wanted.rules?.name ? 'another text of ' : ''
  throw refused(`made with ${another}${sandbox.rules.name}`)
}

export const untilInWords = ({ until, bounds }: Pick<SandboxBody, 'until' | 'bounds'>): string => {
  if (until === null) return `the end of the topic then: ${bounds.join(', ')}`
  if ('time' in until) return until.time
  return until.offsets.map(([partition, offset]) => `${partition}:${offset}`).join(', ')
}

export const listSandboxes = async ({ json }: { readonly json: boolean }, given: CommandContext): Promise<ExitCode> => {
  const context = inSandbox(given)
  for (const [name, found] of await findRemains(context)) {
    const identity = await readGeneration(name, { request: context.send, prefix: context.prefix })
    if (identity?.sandbox === undefined || !isWhole(found, identity.partitions)) {
      const advice = `npm run projection -- drop ${written(name)} removes it`
      if (json) context.out(`${JSON.stringify({ sandbox: written(name), whole: false })}\n`)
      else context.out(`${written(name)}  not whole; ${advice}\n`)
      continue
    }
    const { generation, topic, rules_version, sandbox } = identity
    const records = await recordsOf(name, found.positions, context)
    const wanted = sandbox.bounds.reduce((sum, bound) => sum + bound, 0)
    if (json) {
      const { org, until, bounds, rules } = sandbox
      const made = {
        sandbox: written(generation),
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
    const parts = [
      `${records} of ${wanted} records of ${topic}`,
      `up to ${untilInWords(sandbox)}`,
      ...(sandbox.org === null ? [] : [`only ${sandbox.org}`]),
      `rules version ${rules_version}${sandbox.rules === null ? '' : ` with ${sandbox.rules.name}`}`,
    ]
    context.out(`${written(generation)}  ${parts.join('; ')}\n`)
  }
  return exitCodes.done
}

export const dropSandbox = async (
  { name, json }: { readonly name: string; readonly json: boolean },
  given: KafkaContext,
  groupId: string,
): Promise<ExitCode> => {
  const context = inSandbox(given)
  if (!(await findRemains(context)).has(name)) throw noSandbox(name)
  const group = groupOf(groupId, name)
  await using stack = new AsyncDisposableStack()
  const admin = await connectAdmin(context.kafka, stack)
  const { groups } = await admin.describeGroups([group])
  if ((groups[0]?.members.length ?? 0) > 0) throw new CommandError(`${written(name)} is being made; stop that first`)
  await deleteGeneration(name, group, admin, context)
  context.say(`${written(name)} is dropped`)
  if (json) context.out(`${JSON.stringify({ dropped: written(name) })}\n`)
  return exitCodes.done
}

/** The group id to which `eventsOptions` appends the name of a sandbox. */
export const groupIdOf = (groupId: string): string => `${groupId}-sandbox`
const groupOf = (groupId: string, name: string): string => `${groupIdOf(groupId)}-${name}`
