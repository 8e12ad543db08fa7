/** The store library: Elasticsearch. Its client, documents, positions, generations, refreshes and balances. */
export { type Combinations, type CountedCombination, countCombinations } from './balances/combinations.ts'
export { changeAfter, type DifferencePart, lastBalance, lastBalanceBelow, partsSince } from './balances/difference.ts'
export {
  addAmount,
  amountFields,
  type CountedAmount,
  type Groups,
  groupsOf,
  rowsOf,
} from './balances/sums.ts'
export { lastOffsetIn, pack, readDocuments, write } from './documents/documents.ts'
export { createRefresh, type Refreshing } from './documents/refresh.ts'
export type {
  BulkItem,
  Coverage,
  DocumentAnswer,
  DocumentVersion,
  SearchAnswer,
  TermsAnswer,
  Total,
} from './elasticsearch/answers.ts'
export {
  type Answer,
  AnswerTooLong,
  type Ask,
  bulks,
  causeType,
  createBatcher,
  createElasticsearch,
  documentPath,
  type Elasticsearch,
  errorType,
  ifVersion,
  isTransient,
  primaryReads,
  type Request,
  replacements,
  retryUntilAborted,
  type Send,
  sendWhole,
} from './elasticsearch/client.ts'
export {
  type ClockReading,
  type ClockState,
  type Clocks,
  clockMessages,
  createClocks,
  logClockChange,
} from './elasticsearch/clocks.ts'
export { assertNoPipeline, WITHOUT_PIPELINES } from './elasticsearch/pipelines.ts'
export {
  type DocumentAddress,
  type FoundDocument,
  type GetDocuments,
  getEach,
  getFromPrimaries,
  multiGet,
} from './elasticsearch/primary-reads.ts'
export { elasticsearchConfig } from './elasticsearch-config.ts'
export { authOf, type Credentials, createCredentials } from './elasticsearch-credentials.ts'
export { inspectIndices, type ToldSetting } from './generations/check-index.ts'
export {
  changeGenerations,
  finishSwap,
  formerTopicsIn,
  type Generations,
  generationsIn,
  type Positions,
  readGenerations,
} from './generations/generations.ts'
export {
  assertNoAutoCreate,
  inspectTemplate,
  keepTemplate,
  putTemplate,
  type UnreadOfAutoCreate,
} from './generations/index-templates.ts'
export {
  assertSameIndices,
  assertSeesAll,
  listIndices,
  readIndexIds,
  readRecordableIds,
  readShardIds,
  type Sight,
} from './generations/indices.ts'
export { firstKeyRulesUntil, knowsKeyRules } from './generations/key-rules.ts'
export {
  keepPositionsOf,
  listPastPositions,
  type PastPositions,
  readPastPositions,
} from './generations/past-positions.ts'
export {
  assertControlNotLost,
  assertLiveNotLost,
  assertSuitable,
  controlDefinition,
  indicesOf,
  inspectGeneration,
  layoutOfNew,
  makeFirstLive,
  openGeneration,
  type PrepareSteps,
  prepareCommon,
  prepareControl,
  prepareGeneration,
  readPositions,
  rulesChanged,
} from './generations/prepare.ts'
export {
  assertIntactIndices,
  readControl,
  readGeneration,
  recordIndices,
  recordTopicId,
} from './generations/recorded.ts'
export { createSameIndices, type SameIndices } from './generations/same-indices.ts'
export { watchIndices } from './generations/watch-indices.ts'
export { installationOf } from './installation.ts'
export {
  ANSWER_BYTES_MAX,
  BODY_STORED_MAX,
  CLOCKS_APART_MS,
  ELASTICSEARCH_SLOW_MS,
  IDENTIFY_INTERVAL_MS,
  ORGANIZATIONS_REMEMBERED,
  READ_TIME_MAX,
  READS_IN_FLIGHT_MAX,
  RECORD_FRAME_BYTES,
  SEARCH_TIME_MAX,
  SLICE,
  UNKNOWN_ANSWER_BYTES,
} from './limits.ts'
export {
  createPositionReader,
  type DocumentsOf,
  type Generation,
  generationIdOf,
  isReplaced,
  isServed,
  isVisible,
  notReplacedRange,
  type PositionReader,
  type ReadPosition,
  type ServedPositions,
  visibleRange,
} from './positions/position.ts'
export {
  createPublishedTimes,
  type FurtherPosition,
  type LastWritten,
  laterOf,
  openPublishedPosition,
  openWritten,
  type PublishedPosition,
  type PublishedState,
  type PublishedTimes,
  readWritten,
  writtenDocument,
} from './positions/publish.ts'
export { withTime } from './positions/times-cache.ts'
export {
  type AnswerBudget,
  allocate,
  compact,
  createAnswerBudget,
  free,
  heldBy,
  type Limit,
  type Reservation,
  requireAnswer,
} from './read/answer-budget.ts'
export { batchMultiGets } from './read/batch-multi-gets.ts'
export type { IndexIds } from './read/index-ids.ts'
export {
  createReadMemory,
  createTurn,
  holdReads,
  largeFrom,
  type Reading,
  type ReadScope,
  readingOfProcess,
  type ScopedMultiGet,
  type ScopedReads,
  type ScopedSearch,
  searchSmall,
  type Turn,
  uncounted,
} from './read/scope.ts'
export {
  createSearchClient,
  type MultiGet,
  type Observe,
  type Search,
  type SearchClient,
} from './read/search-client.ts'
export {
  anyHit,
  bodyOf,
  type DocumentName,
  type DocumentSlice,
  type Hit,
  idOf,
  numberOf,
  sliceHits,
  sliceMultiGet,
  sliceSearch,
  smallDocument,
  smallSearch,
  startsWith,
  textOfSlice,
} from './read/slice-documents.ts'
export { clientOptions, createTransport } from './read/transport.ts'
