/** Starts two commands, kills or freezes one of them, and waits until both are over. */

import { StopError } from '../../../core/runtime/failures.ts'
import { CommandError } from '../../../tools/failures.ts'
import type { Random } from '../../support/random.ts'
import type { Broker } from '../broker.ts'
import type { Running, Told } from './commands.ts'
import { PATIENCE, type World } from './world.ts'

/**
 * @property at number of the request before which the command is killed; 0 for no kill
 * @property isFrozen the first command is not killed, but waits for the answer of this request until the second is over
 */
export type Kill = { readonly who: 'first' | 'second'; readonly at: number; readonly isFrozen?: boolean }
export type PairVerdict = {
  readonly failure: string | undefined
  readonly steps: readonly [number, number]
  readonly outcomes: readonly [string, string]
}
/** A command, and the Kafka that its settings name. */
export type Started = { readonly told: Told; readonly broker?: Broker }

const isOver = ({ host, ended }: Running): boolean => host.isDead || ended !== undefined

/**
 * The second command starts at a request of the first, or some time after its end.
 * @param freezes how often the first command is frozen then
 */
export const runTogether = async (
  world: World,
  [first, second]: readonly [Started, Started | undefined],
  random: Random,
  kill: Kill,
  freezes = 0.15,
): Promise<Running[]> => {
  const { clock } = world
  const { isFrozen = false } = kill
  const killAt = (who: Kill['who']) => (kill.who === who && !isFrozen ? kill.at : undefined)
  const running: Running[] = [world.run(first.told, killAt('first'), first.broker)]
  const request = isFrozen ? kill.at : random.below(random.pick([3, 20, 80]))
  const isTime = (): boolean => running.every(one => one.steps >= request || isOver(one))
  await clock.runUntil(isTime, PATIENCE)
  if (isFrozen) running[0]?.host.freeze()
  else if (random.chance(0.1)) await world.pass(random.next() * 16_000)
  if (random.chance(0.15)) world.freezeProjectors(random.next() * random.pick([5_000, 40_000]))
  if (!isFrozen && random.chance(freezes)) freeze(running[0], random, world)
  if (second) running.push(world.run(second.told, killAt('second'), second.broker))
  if (isFrozen) {
    await clock.runUntil(() => world.failure !== undefined || running.slice(1).every(isOver), PATIENCE)
    running[0]?.host.thaw()
  }
  await clock.runUntil(() => world.failure !== undefined || running.every(isOver), PATIENCE)
  // Requests that were sent before a kill still arrive.
  await world.pass(5_000)
  return running
}

/** Freezes a command for longer than a drop waits, or for a moment. */
const freeze = (running: Running | undefined, random: Random, { clock }: World): void => {
  running?.host.freeze()
  clock.after(random.next() * random.pick([2_000, 40_000]), () => running?.host.thaw())
}

export const outcomeOf = ({ told, ended, code, error }: Running): string => {
  const how =
    ended === undefined ? 'killed' : error instanceof Error ? `refused: ${error.message}` : `ended with ${code}`
  return `${told.name} ${how}`
}

/** Why a command ended in a way that tells an operator nothing; undefined if it did not. */
export const unclear = ({ told, host, ended, error, said }: Running): string | undefined => {
  if (ended === undefined) return host.isDead ? undefined : `${told.name} never ended: ${said.join(' | ')}`
  if (error === undefined || error instanceof CommandError || error instanceof StopError) return undefined
  return `${told.name} failed: ${error instanceof Error ? error.stack : String(error)}`
}

export const verdictOf = (failure: string | undefined, running: readonly Running[]): PairVerdict => ({
  failure,
  steps: [running[0]?.steps ?? 0, running[1]?.steps ?? 0],
  outcomes: [running.map(outcomeOf)[0] ?? '', running.map(outcomeOf)[1] ?? ''],
})

/** Runs the same commands again, one after the other. Returns them, and the first that ended unclearly. */
export const runAgain = async (world: World, all: readonly (Started | undefined)[]) => {
  const running: Running[] = []
  for (const one of all) if (one) running.push(await world.alone(one.told, one.broker))
  return { running, failure: running.map(unclear).find(found => found !== undefined) }
}

/** The commands of which one run was killed and one ended with success. */
export const killedAndEnded = (outcomes: ReadonlyMap<string, number>): string[] => {
  const namesOf = (how: string): string[] =>
    [...outcomes.keys()].flatMap(outcome => (outcome.endsWith(how) ? outcome.slice(0, -how.length) : []))
  const ended = namesOf(' ended with 0')
  return namesOf(' killed').filter(name => ended.includes(name))
}
