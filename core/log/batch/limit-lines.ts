/**
 * Chooses which batches that nobody can read get a line of the log. In: such batches, one after the other. Out: how
 * many lines can still follow in this minute, and how many batches got none since the last line; undefined if this
 * batch gets none.
 * Promises: a producer cannot fill the log. In a window there are at most UNDECODABLE_LOGGED lines. Each batch is
 *   parked and counted, also without a line.
 */
import { UNDECODABLE_LOGGED, UNDECODABLE_LOGGED_MS } from '../limits.ts'

export type AdmitBatch = () => { readonly more: number; readonly unnamed: number } | undefined

/** @param elapsed milliseconds of a monotonic clock */
export const createAdmitBatch = (elapsed: () => number): AdmitBatch => {
  let ends = Number.NEGATIVE_INFINITY
  let more = 0
  let unnamed = 0
  return () => {
    if (elapsed() >= ends) {
      ends = elapsed() + UNDECODABLE_LOGGED_MS
      more = UNDECODABLE_LOGGED
    }
    if (more === 0) {
      unnamed++
      return undefined
    }
    more--
    const since = unnamed
    unnamed = 0
    return { more, unnamed: since }
  }
}
