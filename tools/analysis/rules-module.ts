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
import { readFile } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
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
  const text = await readFile(path).catch(() => {
    throw new CommandError(`the rules cannot be read: ${file}`)
  })
  const load = (): Promise<{ readonly default?: unknown }> => import(pathToFileURL(path).href)
  const { default: make } = await attempt(`${name} cannot be loaded`, load)
  if (typeof make !== 'function') throw new CommandError(`${name} has no function as its default export`)
  const made: unknown = await attempt(`${name} gives no rules`, () => make(copyOfBuiltInRules()))
  return {
    table: tableIn(made, name),
    identity: { name, sha256: createHash('sha256').update(text).digest('hex') },
  }
}

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
