/**
 * Decides one record on stored documents and on the records that were decided before it, as the projector would.
 * Read-only: nothing is written.
 */

import {
  type BatchOutcome,
  batchOfOne,
  builtInRules,
  type Cache,
  decideBatch,
  decode,
  detailOf,
  outcomeOf,
  type PartitionSource,
  type RawRecord,
  type ReadDocuments,
} from '../../core/ledger/index.ts'
import type { ParkCode } from '../../schemas/errors.ts'

/** Higher than any real offset, and low enough to count up without losing precision. */
export const AFTER_ALL_OFFSETS = 2 ** 52

export type Outcome =
  | { readonly outcome: 'applied' | 'duplicate' }
  | { readonly outcome: 'parked'; readonly code: ParkCode; readonly detail: string }

type DecidedRecord = Pick<BatchOutcome, 'assessed' | 'state'> & {
  readonly outcome: Outcome
  /** The documents that the record makes or changes. Add them to the cache before the next decision. */
  readonly documents: BatchOutcome['documents']
}

/**
 * @param source where the record is, or would be
 * @param known the documents of earlier decisions; @param read reads all others
 */
export const decideRecord = async (
  record: RawRecord,
  source: PartitionSource & { readonly topic: string },
  known: Cache,
  read: ReadDocuments,
): Promise<DecidedRecord> => {
  const decided = await decideBatch(batchOfOne(record), { decode, source, rules: builtInRules }, known, read)
  const { assessed, state } = decided
  const code = outcomeOf(decided)
  if (code === 'applied') return { outcome: { outcome: code }, documents: decided.documents, assessed, state }
  if (code === 'duplicate') return { outcome: { outcome: code }, documents: [], assessed, state }
  const outcome = { outcome: 'parked', code, detail: detailOf({ code, record, source }) } as const
  return { outcome, documents: [], assessed, state }
}
