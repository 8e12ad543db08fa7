/**
 * Checks often that a generation still has the indices that were recorded for it, with few requests.
 * In: the document of a generation, after what is asked for was read of its indices. Out: nothing.
 * Promises: an outcome counts for INTACT_REMEMBERED_MS, for the same recorded ids, and until it is forgotten.
 * Can go wrong: as `assertSameIndices`.
 */
import { StopError } from '../../runtime/index.ts'
import { INTACT_REMEMBERED_MS } from '../limits.ts'
import { assertSameIndices } from './indices.ts'

export type SameIndices = {
  readonly assertSame: (...asked: Parameters<typeof assertSameIndices>) => Promise<void>
  /** Also the checks under way do not count for later calls. */
  readonly forget: () => void
}

/** @param elapsed milliseconds on a monotonic clock */
export const createSameIndices = (elapsed: () => number): SameIndices => {
  type Outcome = { readonly recorded: string; readonly at: number; readonly difference: StopError | undefined }
  let known = new Map<string, Outcome>()

  return {
    assertSame: async (identity, ...steps) => {
      const { generation, indices, shards, lost } = identity
      const outcomes = known
      const [recorded, at] = [JSON.stringify([indices, shards, lost]), elapsed()]
      let outcome = outcomes.get(generation)
      if (outcome?.recorded !== recorded || at - outcome.at >= INTACT_REMEMBERED_MS) {
        const difference = await differenceIn(assertSameIndices(identity, ...steps))
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
