/** What the rules of an event type say, and what they are given. */
import type { ParkCode } from '../../schemas/errors.ts'
import type { Change, DocumentRef, State } from './state.ts'

export type Decision =
  | { readonly outcome: 'applied'; readonly changes: readonly Change[] }
  | { readonly outcome: 'duplicate' }
  | { readonly outcome: 'parked'; readonly code: ParkCode }

export const parked = (code: ParkCode): Decision => ({ outcome: 'parked', code })
export const duplicate: Decision = { outcome: 'duplicate' }

/**
 * The documents a decision may look at, as far as they are known from the event alone, each by what it is to the event.
 */
export type Names = Readonly<Record<string, DocumentRef | undefined>>

/**
 * An event with its place in the log: `seq` is its offset, `at` its time in milliseconds, never lower than one before
 * it.
 */
export type Placed<Data, Needed = Names> = {
  readonly data: Data
  readonly names: Needed
  readonly hash: string
  readonly seq: number
  readonly at: number
}

/**
 * The rules of one kind of event. All three are pure.
 * - `names`: what a decision may look at
 * - `namesNext`: what is known only once the first are there
 * - `decide`: what the event does, given the records before it
 */
export type Rules<Data, Needed = Names> = {
  readonly names: (data: Data) => Needed
  readonly namesNext: (event: Placed<Data, Needed>, state: State) => readonly DocumentRef[]
  readonly decide: (event: Placed<Data, Needed>, state: State) => Decision
}
