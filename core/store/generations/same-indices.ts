/**
 * Checks often that a generation still has the indices that were recorded for it, with few requests.
 * In: the document of a generation, after parked records were read of it. Out: nothing.
 * Promises: an outcome counts for INTACT_REMEMBERED_MS, for the same recorded ids, and until it is forgotten.
 * Can go wrong: as `assertSameIndices`.
 */
import type { GenerationDocument } from '../../../schemas/stored/documents.ts'
import { parkedIndexOf } from '../../../schemas/stored/layout.ts'
import { StopError } from '../../runtime/index.ts'
import { INTACT_REMEMBERED_MS } from '../limits.ts'
import { assertSameIndices, type CompareSteps } from './indices.ts'

export type SameIndices = {
  readonly assertSame: (identity: GenerationDocument['body'], steps: Omit<CompareSteps, 'read'>) => Promise<void>
  /** Also the checks under way do not count for later calls. */
  readonly forget: () => void
}

/** @param elapsed milliseconds on a monotonic clock */
export const createSameIndices = (elapsed: () => number): SameIndices => {
  type Outcome = { readonly recorded: string; readonly at: number; readonly difference: StopError | undefined }
  let known = new Map<string, Outcome>()

  return {
    assertSame: async (identity, steps) => {
      const { generation, indices, shards, lost } = identity
      const outcomes = known
      const [recorded, at] = [JSON.stringify([indices, shards, lost]), elapsed()]
      let outcome = outcomes.get(generation)
      if (outcome?.recorded !== recorded || at - outcome.at >= INTACT_REMEMBERED_MS) {
        const read = [parkedIndexOf(steps.prefix, generation)]
        const difference = await differenceIn(assertSameIndices(identity, { ...steps, read }))
        outcome = { recorded, at, difference }
        outcomes.set(generation, outcome)
      }
      if (outcome.difference !== undefined) throw outcome.difference
    },
    forget: () => {
      known = new Map()
    },
  }
}

const differenceIn = (checked: Promise<unknown>): Promise<StopError | undefined> =>
  checked.then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof StopError) return error
      throw error
    },
  )
