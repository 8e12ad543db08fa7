/** What is noted of two generations that were compared, in the document that says which generation is live. */

/** What the last comparison of two generations found. */
export type Comparison = {
  found: 'equal' | 'different'
  /** Next offsets by partition: everything before them was compared. */
  positions: number[]
  /** The rules version of each, in the order of the names. */
  rules_versions: number[]
  /** Counts the comparisons of these two: one that ends notices another one that ended meanwhile. */
  run: number
}
/** Two generations by their names, whichever comes first. */
export const pairOf = (a: string, b: string): string => [a, b].sort().join(' ')
