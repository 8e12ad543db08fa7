/** The result of comparing two generations, as stored in the document that names the live generation. */

export type Comparison = {
  found: 'equal' | 'different'
  /** Next offsets by partition: every record before them was compared. */
  positions: number[]
  /** The rules version of each generation, ordered by generation name. */
  rules_versions: number[]
  /** The copy of each generation, in the same order: `adopt` and `rewind` make another one. Absent in older notes. */
  copies?: string[]
  /** Counts the comparisons of the pair, so that a comparison notices another one that ended meanwhile. */
  run: number
}
/** Names a pair of generations, independent of their order. */
export const pairOf = (a: string, b: string): string => [a, b].sort().join(' ')
