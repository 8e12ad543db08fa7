export type Mutant = {
  readonly name: string
  /** The function, constant, type or class that has the text, or a member of a class, as `Class.member`. */
  readonly inside?: string
  /** Needed only if another file has a place of that name, or for a file that is not TypeScript. */
  readonly file?: string
  /** The text to replace. It occurs exactly once in the place. */
  readonly find: string
  readonly replace: string
  /** A test on real services or of the simulation that must also notice the bug. */
  readonly flow?: string
}

/** Tests on real services that notice many of the bugs. */
export const PROJECTED = 'test/flow/promises/what-is-projected.test.ts'
export const WALKS = 'test/flow/promises/walks.test.ts'
