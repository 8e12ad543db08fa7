export type Mutant = {
  readonly name: string
  readonly file: string
  /** The text to replace. It occurs exactly once in the file. */
  readonly find: string
  readonly replace: string
  /** A test on real services or of the simulation that must also notice the bug. */
  readonly flow?: string
}

/** Tests on real services that notice many of the bugs. */
export const PROJECTED = 'test/flow/promises/what-is-projected.test.ts'
export const WALKS = 'test/flow/promises/walks.test.ts'
