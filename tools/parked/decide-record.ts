/**
 * Decides one record on stored documents and on the records that were decided before it, as the projector would.
 * Read-only: nothing is written.
 */

import {
  assess,
  builtInRules,
  type Cache,
  decode,
  detailOf,
  load,
  type PartitionSource,
  project,
  type RawRecord,
  type ReadDocuments,
  type SerializedChange,
  type State,
  serialize,
  type ValidEvent,
} from '../../core/ledger/index.ts'
import type { ParkCode } from '../../schemas/errors.ts'

/** Higher than any real offset, and low enough to count up without losing precision. */
export const AFTER_ALL_OFFSETS = 2 ** 52

export type Outcome =
  | { readonly outcome: 'applied' | 'duplicate' }
  | { readonly outcome: 'parked'; readonly code: ParkCode; readonly detail: string }

type Decided = {
  readonly outcome: Outcome
  /** The documents that the record makes or changes. Add them to the cache before the next decision. */
  readonly documents: readonly SerializedChange[]
}

/**
 * @param source where the record is, or would be
 * @param known the documents of earlier decisions; @param read reads all others
 * @param before called with a valid event and its state before the decision
 */
export const decideRecord = async (
  record: RawRecord,
  source: PartitionSource & { readonly topic: string },
  known: Cache,
  read: ReadDocuments,
  before: (event: ValidEvent, state: State) => void = () => undefined,
): Promise<Decided> => {
  const assessed = assess(record, { decode, source, rules: builtInRules })
  const { verdict, reads, rules } = assessed
  const parkedAs = (code: ParkCode): Outcome => ({
    outcome: 'parked',
    code,
    detail: detailOf({ code, record, source }),
  })
  if (rules === undefined) return { outcome: parkedAs(verdict), documents: [] }
  const pending = { event: verdict, reads, rules, seq: record.offset, at: record.timestamp }
  const { state } = await load([pending], known, read)
  before(verdict, state)
  const { counts, parkedCodes, changes } = project([assessed], state, source)
  const [code] = parkedCodes
  const outcome: Outcome =
    code !== undefined ? parkedAs(code) : { outcome: counts.duplicate > 0 ? 'duplicate' : 'applied' }
  return { outcome, documents: outcome.outcome === 'applied' ? changes.map(serialize) : [] }
}
