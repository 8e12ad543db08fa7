/**
 * The generations: the live one, those that projectors keep up, the one being made, and the one to go back to. One
 * document holds them all, and each write is conditional on the version that was read: a state in the document of each
 * generation could contradict the others for a while.
 */
import type { Comparison } from '../../../schemas/stored/comparisons.ts'
import {
  controlIndexOf,
  type FormerTopic,
  LIVE_ID,
  type LiveDocument,
  type PositionDocument,
  positionId,
} from '../../../schemas/stored/documents.ts'
import { controlAddress } from '../../../schemas/stored/layout.ts'
import { plainName, storedNameOf, withPlainNames } from '../../../schemas/stored/live-names.ts'
import { StopError } from '../../runtime/index.ts'
import { type Ask, documentPath, ifVersion } from '../elasticsearch/client.ts'
import { getEach, getFromPrimaries } from '../elasticsearch/primary-reads.ts'
import { readControl, readGeneration } from './recorded.ts'

/** Stored as `LiveDocument`: `active` as `kept`, `minPositions` as `floor`, `independentFrom` as `alone`. */
export type Generations = {
  readonly live: string
  /** Kept up by projectors. Includes the live one. */
  readonly active: readonly string[]
  readonly building: string | null
  readonly previous: string | null
  /** Generations that an older version of this program found equal to another, by name. */
  readonly verified: Readonly<Record<string, string>>
  /** The last comparison of each pair of generations, by `pairOf` their names. */
  readonly compared: Readonly<Record<string, Comparison>>
  /** By partition, the position up to which readers may have seen the previous generation; null until `finishSwap`. */
  readonly minPositions: readonly number[] | null
  /** By name, `minPositions` of each generation when it first became live: from there on it decides alone. */
  readonly independentFrom: Readonly<Record<string, readonly number[]>>
  /** The topic that the live generation's topic was grown from. `formerTopicsIn` has those before it, too. */
  readonly grown?: NonNullable<LiveDocument['body']['grown']>
  /** The highest number ever used in a generation's name. */
  readonly highest: number
}

/** Returns undefined before the first start. */
export const readGenerations = async (steps: Steps): Promise<Generations | undefined> => {
  const found = await readControl<LiveDocument>(LIVE_ID, steps)
  return found && generationsIn(found._source)
}

/**
 * Changes the generations; on a conflict, calls `change` again. @throws StopError `index_missing` before the first
 * start; an error of `change`, after which nothing is changed
 */
export const changeGenerations = async (
  steps: Steps,
  change: (now: Generations) => Generations,
): Promise<Generations> => {
  for (;;) {
    const found = await readControl<LiveDocument>(LIVE_ID, steps)
    if (found === undefined) throw new StopError('index_missing', `${LIVE_ID} in ${controlIndexOf(steps.prefix)}`)
    const before = generationsIn(found._source)
    const changed = change(before)
    if (changed === before) return changed
    const { live, active, minPositions, independentFrom, ...others } = changed
    const spelled = await spellingOf(changed, found._source, steps)
    const { status } = await steps.request({
      method: 'PUT',
      path: documentPath(controlIndexOf(steps.prefix), LIVE_ID),
      query: ifVersion(found),
      body: {
        kind: 'live',
        body: {
          generation: spelled(live),
          kept: active.map(spelled),
          floor: minPositions,
          alone: independentFrom,
          ...others,
        },
      } satisfies LiveDocument,
    })
    if (status === 200) return changed
    // 409: another process wrote first, or our earlier attempt succeeded and its response was lost. Decide anew.
    if (status !== 409)
      throw new StopError('index_missing', `${controlIndexOf(steps.prefix)}, while changing`, { status })
  }
}

/**
 * Returns how the live document has each name: as it was found there, so that no program stops before a swap. A name
 * that comes to the others, or becomes the live one, is spelled as `storedNameOf`.
 */
const spellingOf = async (
  { live, active }: Generations,
  { body: { generation, kept = [] } }: LiveDocument,
  steps: Steps,
): Promise<(name: string) => string> => {
  const spellings = new Map([...kept, generation].map(stored => [plainName(stored), stored]))
  const isNew = (name: string): boolean => !spellings.has(name) || (name === live && name !== plainName(generation))
  // Only the document of a generation says which layout it is.
  for (const name of [live, ...active].filter(isNew))
    spellings.set(name, storedNameOf({ ...(await readGeneration(name, steps)), generation: name }))
  return name => spellings.get(name) ?? name
}

/**
 * Finishes a swap: stores the present positions of the previous generation. Readers may have seen that generation up to
 * there, but not further, since nobody reads it any more. Readers of the new generation wait until it has reached these
 * positions; from there on it decides alone. The swap command calls this or, if interrupted, a projector does.
 */
export const finishSwap = async (steps: Steps): Promise<void> => {
  const seen = await readGenerations(steps)
  if (seen === undefined || seen.minPositions !== null || seen.previous === null) return
  const reached = await readPositions(seen.previous, steps).catch((error: unknown) => {
    if (error instanceof StopError && error.code === 'index_missing') return undefined
    throw error
  })
  if (reached === undefined) return assertSwapFinished(seen.previous, steps)
  await changeGenerations(steps, now => {
    if (now.minPositions !== null || now.live !== seen.live || now.previous !== seen.previous) return now
    return { ...now, minPositions: reached, independentFrom: { [now.live]: reached, ...now.independentFrom } }
  })
}

/** Another process may have finished the swap, and dropped the previous generation since. */
const assertSwapFinished = async (previous: string, steps: Steps): Promise<void> => {
  const now = await readGenerations(steps)
  if (now?.minPositions !== null || now.previous !== previous) return
  throw new StopError('index_missing', `generation ${previous} in ${controlIndexOf(steps.prefix)}`)
}

/** The published position of every partition, in order. */
export type Positions = () => Promise<readonly number[]>

const readPositions = async (generation: string, { request, prefix }: Steps): Promise<number[]> => {
  const partitions = (await readGeneration(generation, { request, prefix }))?.partitions ?? 0
  const index = controlIndexOf(prefix)
  if (partitions === 0) throw new StopError('index_missing', `generation ${generation} in ${index}`)
  const docs = Array.from({ length: partitions }, (_, partition) =>
    controlAddress(prefix, positionId(generation, partition)),
  )
  // Readers may have seen what an old copy does not have, and what was published before a restore.
  const positions = await getEach(docs, part => getFromPrimaries<PositionDocument>(request, part))
  return positions.map(found => {
    if (found.found) return Math.max(found._source.body.position, found._source.body.serve_from ?? 0)
    throw new StopError('index_missing', `a position of ${generation} in ${index}`)
  })
}

type Steps = { readonly request: Ask; readonly prefix: string }

/** Returns the topics of events that the live generation's topic was grown from, the last first. */
export const formerTopicsIn = ({ grown }: Pick<Generations, 'grown'>): readonly FormerTopic[] => {
  if (grown === undefined) return []
  const { before = [], ...last } = grown
  return [last, ...before]
}

/** Returns the generations in the document, with defaults for absent fields. */
export const generationsIn = ({ body }: LiveDocument): Generations => {
  const {
    generation,
    kept: active = [generation],
    building = null,
    previous = null,
    floor: minPositions = [],
    verified = {},
    compared = {},
    alone: independentFrom = {},
    highest = 1,
    grown,
  } = withPlainNames(body)
  const roles = { live: generation, active, building, previous }
  return { ...roles, minPositions, verified, compared, independentFrom, highest, ...(grown && { grown }) }
}
