/**
 * The ledger library: an event, the rules, and the decision on each record. It sends nothing to Kafka or
 * Elasticsearch. Its only effects are the spans of `event/trace-batch.ts`.
 */

export { Cache } from './decide/cache.ts'
export type { ReadDocuments } from './decide/decide-batch.ts'
export {
  type BatchOutcome,
  batchOfOne,
  bytesOfAll,
  type DecidedBatch,
  type DecisionSteps,
  decideBatch,
  type Followed,
  outcomeOf,
  type ParkedThere,
  PartitionLedger,
  Queue,
} from './decide/decide-batch.ts'
export {
  type Assessed,
  assess,
  type DecidedDocument,
  draftOf,
  orgOf,
  type ProjectedBatch,
  park,
  serialize,
  timeOfRecord,
} from './decide/project.ts'
export {
  type Batch,
  bytesOf,
  decode,
  describeBatch,
  type Header,
  type RawRecord,
  type RecordHeaders,
  recordHash,
  sayUndecodable,
  UNDECODABLE_BATCH_HEADER,
  type UndecodableBatch,
  type UnreadableReason,
  undecodableBatchOf,
} from './event/decode.ts'
export { detailOf, needsRecord, type ToExplain } from './event/detail.ts'
export { type ForeignKind, foreignForm } from './event/foreign-bytes.ts'
export { JsonText } from './event/json-text.ts'
export { whyNotStrictJson } from './event/strict-json.ts'
export { traceBatch } from './event/trace-batch.ts'
export { type PartitionSource, type ValidEvent, validate } from './event/validate.ts'
export { type AnyRules, builtInRules, KEY_RULES_VERSION, RULES_VERSION, type RulesTable } from './rules/rules.ts'
export type { Decision, Rules, SequencedEvent } from './rules/state.ts'
export {
  type AnyDocument,
  type AnyNewDocument,
  type DocumentChange,
  type DocumentKey,
  type DocumentRef,
  refOf,
  State,
  versionsBefore,
} from './rules/state.ts'
