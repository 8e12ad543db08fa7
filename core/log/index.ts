/**
 * The log library: a log of records, in Kafka or in an archive. It identifies a log, reads it, follows it and
 * appends to it.
 */
export { createAdmitBatch } from './batch/limit-lines.ts'
export { connectAdmin, connectProducer } from './connect.ts'
export { createEventsTopic, createMissingTopics } from './create-topics.ts'
export { readDurability, weakerThan } from './durability.ts'
export { archivedLog, type VerifiedLog } from './follow/archived-log.ts'
export { type Consumption, consume, type LogHandlers, type StreamLog } from './follow/consume.ts'
export {
  assertOwnGroup,
  describeGroup,
  enterGroup,
  type GroupAdmin,
  type InstallationIdentity,
} from './follow/group.ts'
export { type Bounds, endWithin, restingAt, upToBound } from './follow/stop-at.ts'
export { accessRefusal, failedAuthentication, withRight } from './kafka/access-refusal.ts'
export { type AuthorizedOperations, type Operations, openAuthorizedOperations } from './kafka/authorized-operations.ts'
export { EncodedHeaders, encodeHeaders } from './kafka/encoded-headers.ts'
export {
  assertLastRecord,
  assertNoOther,
  assertNotCompacted,
  assertNotTruncated,
  assertOnePartition,
  assertSameSource,
  checkTopicConfiguration,
  describeSource,
  differingField,
  type Ends,
  endOfPartition,
  fetchEndOffsets,
  fetchEnds,
  fetchRanges,
  type GenerationBody,
  isLastRecord,
  type KnownRecord,
  type LastRecord,
  type Source,
  type SourceAdmin,
  TIMES_OF_PUBLISHERS,
} from './kafka/source.ts'
export { keptRecord, toRawRecord } from './kafka/stored-record.ts'
export { type KafkaAccess, kafkaAccess, kafkaConfig } from './kafka-config.ts'
export { asUnanswered, untilKafkaAnswers } from './kafka-retry.ts'
export { type AppendedBatch, appendInTransactions, type LogTransactions } from './records/append-in-transactions.ts'
export { appendLog, type LogAppender } from './records/append-log.ts'
export { BATCH_TIME_SPAN, kafkaTime } from './records/encode-batch.ts'
export { createLastRecordReader, firstChanged, type KnownRecords, type OpenLog } from './records/last-records.ts'
export { mergedByTime } from './records/merge-by-time.ts'
export { type LogCluster, openCluster } from './records/open-cluster.ts'
export {
  type AskedTopic,
  adviceOfHidden,
  endsWithWritten,
  type LogEnds,
  type OpenThen,
  type OpenTransactions,
  openSince,
  openTransactionsOf,
  textOfHidden,
  textOfOpen,
  textOfUnknown,
  writtenIn,
} from './records/open-transactions.ts'
export { type LogEntry, type LogPart, type LogReader, type Pause, readLog, readUntilFound } from './records/read-log.ts'
