/** A bug that somebody could make, as text put in the place of other text. */
export type Mutant = {
  readonly name: string
  readonly file: string
  /** Stands there exactly once, and is replaced. */
  readonly find: string
  readonly replace: string
  /** Tests on real services that must notice, where they are needed or worth naming. */
  readonly flow?: string
}

/** Tests on real services that notice many of them. */
export const PROJECTED = 'test/flow/promises/what-is-projected.test.ts'
export const WALKS = 'test/flow/promises/walks.test.ts'
