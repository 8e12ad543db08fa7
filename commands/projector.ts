/** The functions and types of the projector that commands use. Commands import projector/ only through this file. */
export { createAdmitBatch } from '../projector/batch/name-undecodable.ts'
export { elasticsearchConfig, kafkaAccess, kafkaConfig } from '../projector/client-options.ts'
export type {
  CountAnswer,
  Coverage,
  DocumentAnswer,
  DocumentVersion,
  SearchAnswer,
  TermsAnswer,
  Total,
} from '../projector/elasticsearch/answers.ts'
export {
  type Answer,
  AnswerTooLong,
  type Ask,
  createElasticsearch,
  type DocumentAddress,
  documentPath,
  errorType,
  type FoundDocument,
  getEach,
  ifVersion,
  isTransient,
  multiGet,
  type Request,
  type Send,
  Unavailable,
} from '../projector/elasticsearch/client.ts'
export { getFromPrimaries } from '../projector/elasticsearch/primary-reads.ts'
export { decode } from '../projector/event/decode.ts'
export { detailOf, needsRecord } from '../projector/event/detail.ts'
export { type ForeignKind, foreignForm } from '../projector/event/foreign-bytes.ts'
export { JsonText } from '../projector/event/raw-json.ts'
export type { RawRecord } from '../projector/event/raw-record.ts'
export { whyNotStrictJson } from '../projector/event/strict-json.ts'
export { sayUndecodable, UNDECODABLE_BATCH_HEADER, undecodableBatchOf } from '../projector/event/undecodable-batch.ts'
export { type PartitionSource, type ValidEvent, validate } from '../projector/event/validate.ts'
export { nameOf, StopError } from '../projector/failures.ts'
export { assess } from '../projector/flow/assess.ts'
export { Cache } from '../projector/flow/cache.ts'
export { load, type ReadDocuments, readDocuments } from '../projector/flow/load.ts'
export { type Assessed, orgOf, project } from '../projector/flow/project.ts'
export { type SerializedChange, serialize } from '../projector/flow/serialize.ts'
export type { ToldSetting } from '../projector/generations/check-index.ts'
export {
  changeGenerations,
  finishSwap,
  type Generations,
  readGenerations,
} from '../projector/generations/generations.ts'
export { readIndexIds } from '../projector/generations/indices.ts'
export { firstKeyRulesUntil, knowsKeyRules } from '../projector/generations/key-rules.ts'
export { listPastPositions, type PastPositions, readPastPositions } from '../projector/generations/past-positions.ts'
export { prepareControl, prepareGeneration, readGeneration } from '../projector/generations/prepare.ts'
export { assertRulesKnown, type InspectSteps, inspectCommon, inspectStream } from '../projector/inspect-start.ts'
export { accessRefusal, withRight } from '../projector/kafka/access-refusal.ts'
export {
  type AuthorizedOperations,
  type Operations,
  openAuthorizedOperations,
} from '../projector/kafka/authorized-operations.ts'
export { EncodedHeaders, encodeHeaders } from '../projector/kafka/encoded-headers.ts'
export {
  assertSameSource,
  checkTopicConfiguration,
  describeSource,
  differingField,
  type Ends,
  endOfPartition,
  fetchEnds,
  type GenerationBody,
  isLastRecord,
  recordHash,
  type Source,
  TIMES_OF_PUBLISHERS,
} from '../projector/kafka/source.ts'
export { keptRecord, toRawRecord } from '../projector/kafka/stored-record.ts'
export {
  CLOCKS_APART_MS,
  DRAIN_TIMEOUT_MS,
  GENERATIONS_POLL_MS,
  STOP_TIMEOUT_MS,
  STREAMS_STOP_TIMEOUT_MS,
} from '../projector/limits.ts'
export { appendLog, type LogAppender } from '../projector/log/append-log.ts'
export { type LogCluster, openCluster } from '../projector/log/open-cluster.ts'
export { type LogEntry, type LogPart, type LogReader, readLog } from '../projector/log/read-log.ts'
export { BATCH_TIME_SPAN, kafkaTime } from '../projector/log/record-batch.ts'
export { type RebuildContext, type RebuildProgress, rebuildGeneration } from '../projector/rebuild.ts'
export type { Decision, Rules, SequencedEvent } from '../projector/rules/decision.ts'
export {
  type AnyRules,
  builtInRules,
  KEY_RULES_VERSION,
  RULES_VERSION,
  type RulesTable,
} from '../projector/rules/rules.ts'
export {
  type AnyNewDocument,
  type DocumentChange,
  type DocumentKey,
  type DocumentRef,
  type IndexKind,
  refOf,
  State,
  versionsBefore,
} from '../projector/rules/state.ts'
export { eventsOptions } from '../projector/start.ts'
export type { VerifiedLog } from '../projector/stream/archived-log.ts'
export type { KafkaAccess } from '../projector/stream/kafka-log.ts'
export type { Bounds } from '../projector/stream/stop-at.ts'
export { endAtUnhandledErrors } from '../projector/unhandled-errors.ts'
