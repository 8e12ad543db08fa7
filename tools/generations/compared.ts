/**
 * The note of a comparison of two generations: compared copies, positions and result. A swap without `--force` needs
 * such a note.
 * Promises: no note about records that a rebuild has not projected yet; no `equal` after a later comparison found a
 * difference; a note expires when too many records have been projected since, and when one of the generations was read
 * again after `adopt` or `rewind`.
 */

import type { GenerationBody } from '../../core/log/index.ts'
import { changeGenerations, type Generations, generationIdOf, readGeneration } from '../../core/store/index.ts'
import { type Comparison, pairOf } from '../../schemas/stored/comparisons.ts'
import type { PositionDocument } from '../../schemas/stored/documents.ts'
import type { CommandContext } from '../context.ts'
import { assertOwnIndices } from '../documents/shards.ts'
import { CommandError } from '../failures.ts'
import { SWAP_UNCOMPARED_PART, SWAP_UNCOMPARED_RECORDS } from '../limits.ts'
import { positionDocumentsOf, recordsBefore } from './generations.ts'

/** Next offsets by partition. */
type Positions = readonly number[]

/**
 * Returns the positions that both generations have reached.
 * @throws CommandError if only one of them has records of a partition: nothing of it would be compared
 */
export const commonPositions = (
  a: readonly [name: string, Positions],
  b: readonly [name: string, Positions],
): number[] =>
  a[1].map((ours, partition) => {
    const theirs = b[1][partition] ?? 0
    if (Math.min(ours, theirs) === 0 && Math.max(ours, theirs) > 0) {
      throw new CommandError(
        `${ours === 0 ? a[0] : b[0]} has nothing of partition ${partition} yet: compare them later`,
      )
    }
    return Math.min(ours, theirs)
  })

/**
 * Names the copy of a generation that a command reads. One that was dropped and made anew has other indices. `adopt`
 * and `rewind` raise `taken_back` of each partition: decisions may be others when all is read again.
 */
export const copyAt = (
  { generation, indices }: Pick<GenerationBody, 'generation' | 'indices'>,
  positions: readonly PositionDocument['body'][],
): string => [generationIdOf(generation, indices), ...positions.map(({ taken_back = 0 }) => taken_back)].join(' ')

/**
 * @param label of the generation, for the message
 * @param copy that was read, by `copyAt`
 * @param refusal as of `assertOwnIndices`
 * @throws CommandError if it is another one by now; also as `assertOwnIndices`
 */
export const assertSameCopy = async (
  label: string,
  copy: string,
  identity: GenerationBody,
  refusal: string | undefined,
  context: Pick<CommandContext, 'send' | 'prefix' | 'say'>,
): Promise<void> => {
  const now = await readGeneration(identity.generation, { request: context.send, prefix: context.prefix })
  if (now === undefined) throw new CommandError(`${label} was dropped meanwhile`)
  if (copyAt(now, await positionDocumentsOf(now, context)) !== copy) {
    const how = identity.sandbox ? 'made anew' : 'made anew, or read again after adopt or rewind,'
    throw new CommandError(`${label} was ${how} meanwhile: run the same again`)
  }
  await assertOwnIndices(identity, refusal, context)
}

/** Forgets what was compared with a generation: its documents may become others. */
export const forgetComparisons = async (generation: string, { send, prefix }: CommandContext): Promise<void> => {
  await changeGenerations({ request: send, prefix }, now => withoutComparisons(generation, now))
}

export const withoutComparisons = (generation: string, now: Generations): Generations => {
  const isOther = (pair: readonly string[]): boolean => !pair.includes(generation)
  const verified = Object.entries(now.verified).filter(isOther)
  const compared = Object.entries(now.compared).filter(([pair]) => isOther(pair.split(' ')))
  const before = Object.keys(now.verified).length + Object.keys(now.compared).length
  if (verified.length + compared.length === before) return now
  return { ...now, verified: Object.fromEntries(verified), compared: Object.fromEntries(compared) }
}

type ComparedPair = {
  readonly a: GenerationBody
  readonly b: GenerationBody
  /** Of a and of b, by `copyAt`. */
  readonly copies: readonly [string, string]
  readonly positions: Positions
  /** The generations before the comparison began. */
  readonly before: Generations
}

/**
 * Stores the result of a comparison. A difference replaces any earlier note, and a note of an older version of this
 * program is removed.
 * @returns why the result was not stored; undefined if it was
 */
export const noteComparison = async (
  found: Comparison['found'],
  { a, b, copies, positions, before }: ComparedPair,
  { send, prefix }: CommandContext,
): Promise<string | undefined> => {
  const pair = pairOf(a.generation, b.generation)
  let why: string | undefined
  await changeGenerations({ request: send, prefix }, now => {
    why = whyNotNoted(found, a.generation, b.generation, before, now)
    if (why !== undefined) return now
    const last = now.compared[pair]
    const verified = Object.fromEntries(
      Object.entries(now.verified).filter(([name, other]) => pairOf(name, other) !== pair),
    )
    const comparison: Comparison = {
      found,
      positions: [...positions],
      ...sidesOf([a, copies[0]], [b, copies[1]]),
      run: (last?.run ?? 0) + 1,
    }
    return { ...now, verified, compared: { ...now.compared, [pair]: comparison } }
  })
  return why
}

type ComparedSide = readonly [identity: GenerationBody, copy: string]

const sidesOf = (...sides: readonly ComparedSide[]) => {
  const sorted = sides.toSorted(([one], [other]) => (one.generation < other.generation ? -1 : 1))
  return { rules_versions: sorted.map(([{ rules_version }]) => rules_version), copies: sorted.map(([, copy]) => copy) }
}

/** Returns undefined if the result is to be stored. */
const whyNotNoted = (
  found: Comparison['found'],
  a: string,
  b: string,
  before: Generations,
  now: Generations,
): string | undefined => {
  const pair = pairOf(a, b)
  const last = now.compared[pair]
  const isInactive = (name: string): boolean => !now.active.includes(name)
  if (found === 'different') {
    const absent = last === undefined ? [a, b].find(isInactive) : undefined
    return absent === undefined ? undefined : `${absent} is not kept up by projectors`
  }
  const inactive = [a, b].find(isInactive) ?? [a, b].find(name => !before.active.includes(name))
  if (inactive !== undefined) return `projectors did not keep up ${inactive} during the whole comparison`
  const isOlder = last?.found === 'different' && last.run !== (before.compared[pair]?.run ?? 0)
  return isOlder ? 'another comparison found a difference meanwhile' : undefined
}

const refusalOf = (name: string, other: string, why: string): CommandError =>
  new CommandError(`${name} ${why}: npx commission projection verify ${other} ${name}, or --force with a reason`)

/** @throws CommandError if a generation was found different from the live one */
export const assertNotDifferent = ({ compared }: Pick<Generations, 'compared'>, name: string, live: string): void => {
  if (compared[pairOf(name, live)]?.found !== 'different') return
  throw refusalOf(name, live, `was found different from ${live}`)
}

/**
 * @param side the generation to be made live, with its copy
 * @param reached its positions
 * @throws CommandError if it was not found equal to the live one, in other copies, or too many records ago
 */
export const assertComparedEqual = (
  now: Pick<Generations, 'compared' | 'verified'>,
  side: ComparedSide,
  live: ComparedSide,
  reached: Positions,
): void => {
  const [name, other] = [side[0].generation, live[0].generation]
  const refusal = (why: string): CommandError => refusalOf(name, other, why)
  const note = now.compared[pairOf(name, other)]
  if (note === undefined) {
    const isOld = now.verified[name] === other
    throw refusal(
      isOld
        ? `was found equal to ${other} by an older version of this program, which did not note the positions`
        : `was not found equal to ${other}`,
    )
  }
  assertNotDifferent(now, name, other)
  const { rules_versions, copies } = sidesOf(side, live)
  if (rules_versions.some((version, index) => version !== note.rules_versions[index])) {
    throw refusal(`was found equal to ${other} under other rules`)
  }
  if (note.copies === undefined) {
    throw refusal(`was found equal to ${other} by an older version of this program, which did not note the copies`)
  }
  if (copies.some((copy, index) => copy !== note.copies?.[index])) {
    throw refusal(
      `was found equal to ${other} before one of them was read again after adopt or rewind, or its clock was corrected`,
    )
  }
  const compared = recordsBefore(note.positions)
  if (
    note.positions.length !== reached.length ||
    note.positions.some((to, partition) => (reached[partition] ?? 0) < to)
  ) {
    throw refusal(`lies behind the positions at which it was found equal to ${other}`)
  }
  const since = recordsBefore(reached) - compared
  if (since > Math.max(SWAP_UNCOMPARED_RECORDS, compared / SWAP_UNCOMPARED_PART)) {
    throw refusal(`was found equal to ${other} as of ${compared} records, and has ${since} more since`)
  }
}
