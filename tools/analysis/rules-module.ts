/**
 * An analyst's own rules: a module (.ts or .js) whose default export is a function. It gets the built-in table of rules
 * and returns the table to use. Rules that it does not replace stay:
 *
 *   export default defineRules(rules => ({
 *     ...rules,
 *     'commission.payout.calculated.v1': {
 *       ...rules['commission.payout.calculated.v1'],
 *       decide: (event, state) => …,
 *     },
 *   }))
 *
 * `tools/rules.ts` has `defineRules` and the types. Rules must be pure: results may depend on the event and the
 * state only. Otherwise a replay that is stopped and continued gives another result. `rules check` tries a module.
 */
import { createHash } from 'node:crypto'
import { access, constants, readFile, realpath, stat } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type AnyRules, builtInRules, type RulesTable } from '../../core/ledger/index.ts'
import { parkCodes } from '../../schemas/errors.ts'
import type { EventType } from '../../schemas/events.ts'
import { keysOf, objectOf } from '../../schemas/objects.ts'
import type { SandboxBody } from '../../schemas/stored/sandboxes.ts'
import { CommandError } from '../failures.ts'

export type RulesModule = { readonly table: RulesTable; readonly identity: NonNullable<SandboxBody['rules']> }

const types = keysOf(builtInRules)

/** Returns a frozen copy of the built-in rules: a module may reuse them, but cannot change them. */
const copyOfBuiltInRules = (): RulesTable =>
  Object.freeze(objectOf(types, type => Object.freeze({ ...builtInRules[type] })))

/** @throws CommandError that names what is wrong with the module */
export const loadRules = async (file: string): Promise<RulesModule> => {
  const name = basename(file)
  const path = resolve(file)
  await access(path, constants.R_OK).catch(() => {
    throw new CommandError(`the rules cannot be read: ${file}`)
  })
  const load = (): Promise<{ readonly default?: unknown }> => import(pathToFileURL(path).href)
  const { default: make } = await attempt(`${name} cannot be loaded`, load)
  if (typeof make !== 'function') throw new CommandError(`${name} has no function as its default export`)
  const made: unknown = await attempt(`${name} gives no rules`, () => make(copyOfBuiltInRules()))
  return {
    table: tableIn(made, name),
    identity: { name, sha256: await digestOf(path) },
  }
}

/**
 * Returns the SHA-256 of a module; if it names other files, the one over those of all, in the order in
 * which they are named. Files of this program are identified by the version of its rules.
 */
const digestOf = async (module: string): Promise<string> => {
  const files = new Set([await realpath(module)])
  const digests: string[] = []
  // A file that is added meanwhile gets its turn.
  for (const file of files) {
    const text = await readFile(file)
    digests.push(createHash('sha256').update(text).digest('hex'))
    for (const [, , named = ''] of text.toString('utf8').matchAll(RELATIVE)) {
      const found = await realpath(resolve(dirname(file), named)).catch(() => undefined)
      if (found === undefined || ofProgram.some(folder => found.startsWith(folder))) continue
      if ((await stat(found)).isFile()) files.add(found)
    }
  }
  const [only = ''] = digests
  return digests.length === 1 ? only : createHash('sha256').update(digests.join('\n')).digest('hex')
}

/** A text in quotation marks that may be the path of an import. One that names no file means nothing. */
const RELATIVE = /(['"`])(\.{1,2}\/[^'"`\n]+)\1/g
const ofProgram = ['core', 'schemas', 'tools'].map(room => fileURLToPath(new URL(`../../${room}/`, import.meta.url)))

/** Checks that a table has rules for every event type and for nothing else. @throws CommandError */
export const tableIn = (made: unknown, name: string): RulesTable => {
  if (typeof made !== 'object' || made === null) throw new CommandError(`${name} gives no table of rules`)
  const unknown = Object.keys(made).filter(type => !types.some(known => known === type))
  if (unknown.length > 0) throw new CommandError(`${name} gives rules for unknown event types: ${unknown.join(', ')}`)
  const table: Partial<Record<EventType, Partial<AnyRules>>> = made
  return objectOf(types, type => {
    const { reads, thenReads, decide } = table[type] ?? {}
    if (typeof reads !== 'function' || typeof thenReads !== 'function' || typeof decide !== 'function') {
      throw new CommandError(`${name} has no reads, thenReads and decide for ${type}`)
    }
    const builtIn = builtInRules[type]
    const isBuiltIn = builtIn.reads === reads && builtIn.thenReads === thenReads && builtIn.decide === decide
    return isBuiltIn ? builtIn : guard({ reads, thenReads, decide }, type, name)
  })
}

/** Turns exceptions of the module's rules into errors that name the module, the event type and the offset. */
const guard = (rules: AnyRules, type: string, name: string): AnyRules => ({
  reads: data => attemptSync(`${name} failed on a ${type}`, () => rules.reads(data)),
  thenReads: (event, state) =>
    attemptSync(`${name} failed on a ${type} at offset ${event.seq}`, () => rules.thenReads(event, state)),
  decide: (event, state) => {
    const where = `a ${type} at offset ${event.seq}`
    const decision = attemptSync(`${name} failed on ${where}`, () => rules.decide(event, state))
    if (isDecision(decision)) return decision
    throw new CommandError(`${name} gives no decision on ${where}`)
  },
})
const isDecision = (decision: Partial<Record<string, unknown>> | undefined): boolean =>
  decision?.outcome === 'duplicate' ||
  (decision?.outcome === 'applied' && Array.isArray(decision.changes)) ||
  (decision?.outcome === 'parked' && parkCodes.some(code => code === decision.code))

const attempt = async <Result>(what: string, act: () => Result | Promise<Result>): Promise<Result> => {
  try {
    return await act()
  } catch (error) {
    throw withoutMessage(what, error)
  }
}

const attemptSync = <Result>(what: string, act: () => Result): Result => {
  try {
    return act()
  } catch (error) {
    throw withoutMessage(what, error)
  }
}

/** The class of an error and its location. Never its message, which may quote a record. */
const withoutMessage = (what: string, error: unknown): CommandError => {
  const kind = error instanceof Error ? error.name : typeof error
  const [, file, line] =
    (error instanceof Error && /([^/\\\s(]+\.[cm]?[jt]s):(\d+):\d+\)?$/m.exec(error.stack ?? '')) || []
  return new CommandError(`${what}: ${kind}${file === undefined ? '' : ` in ${file}, line ${line}`}`)
}
