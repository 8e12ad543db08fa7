/** What the rules of an event type say, and what they are given. */
import type { ParkCode } from '../../schemas/errors.ts'
import type { Change, Key, State } from '../state.ts'

export type Decision =
  | { readonly outcome: 'applied'; readonly changes: readonly Change[] }
  | { readonly outcome: 'duplicate' }
  | { readonly outcome: 'parked'; readonly code: ParkCode }

export const parked = (code: ParkCode): Decision => ({ outcome: 'parked', code })
export const duplicate: Decision = { outcome: 'duplicate' }

/** An event with its place in the log: `seq` is its offset, `at` its time in milliseconds, never lower than one before it. */
export type Placed<Data> = { readonly data: Data; readonly hash: string; readonly seq: number; readonly at: number }

/**
 * The rules of one kind of event. All three are pure.
 * - `needs`: the documents a decision may look at, known from the event alone
 * - `needsNext`: those known only once the first are there
 * - `decide`: what the event does, given the records before it
 */
export type Rules<Data> = {
  readonly needs: (data: Data) => Key[]
  readonly needsNext: (event: Placed<Data>, state: State) => Key[]
  readonly decide: (event: Placed<Data>, state: State) => Decision
}
