/** Types of the rules: the event that they receive, and the decision that they return. */
import type { ParkCode } from '../../../schemas/errors.ts'
import type { DocumentChange, DocumentRef, State } from './state.ts'

export type Decision =
  | { readonly outcome: 'applied'; readonly changes: readonly DocumentChange[] }
  | { readonly outcome: 'duplicate' }
  | { readonly outcome: 'parked'; readonly code: ParkCode }

export const parked = (code: ParkCode): Decision => ({ outcome: 'parked', code })
export const duplicate: Decision = { outcome: 'duplicate' }

/** References to the documents that the data of an event names, by role. A decision may read these documents. */
export type Reads = Readonly<Record<string, DocumentRef | undefined>>

/** An event with its offset in the log (`seq`). Events before it may be undecided yet. */
export type EventToLoad<Data, Needed = Reads> = {
  readonly data: Data
  readonly reads: Needed
  readonly hash: string
  readonly seq: number
}

/** An event to decide. `at`: the time of its record, in milliseconds. It never decides anything. */
export type SequencedEvent<Data, Needed = Reads> = EventToLoad<Data, Needed> & { readonly at: number }

/**
 * The rules of one event type. All three functions are pure.
 * - `reads`: the documents that the event names
 * - `thenReads`: further documents, which are known only after the first ones are loaded
 * - `decide`: the effect of the event, given the records before it
 */
export type Rules<Data, Needed = Reads> = {
  readonly reads: (data: Data) => Needed
  readonly thenReads: (event: EventToLoad<Data, Needed>, state: State) => readonly DocumentRef[]
  readonly decide: (event: SequencedEvent<Data, Needed>, state: State) => Decision
}
