/**
 * The runtime library: settings, failures, health, time limits, semaphores, retries, bounded logs and the metrics of a
 * process. It knows neither Kafka nor Elasticsearch.
 */
export { boundLog } from './bounded-log.ts'
export { type ErrorLocation, errorLocation, UNHANDLED_EXIT_CODE } from './error-location.ts'
export { nameOf, StopError, type Where } from './failures.ts'
export { createHealth, type Health, type HealthLog, type HealthPart, type ReportTrouble } from './health.ts'
export { keepTrying, pauseBefore, type Retrying, type RetryOptions, Unanswered } from './keep-trying.ts'
export { AGE_INTERVAL_MS, REDIS_CONNECT_TIME_MAX, STALE_AGE_MS } from './limits.ts'
export { lruOptions } from './lru-options.ts'
export { createProcessMetrics } from './process-metrics.ts'
export { redisRefusal } from './redis-refusal.ts'
export {
  ADMIN_FAILED,
  ADMIN_METHOD_REFUSED,
  ADMIN_NOT_FOUND,
  isRetryable,
  NO_CONTENT,
  NOT_MODIFIED,
  NOT_READY,
  OK,
  Refusal,
  refusalAnswer,
  retryAfter,
  unavailable,
} from './refusals.ts'
export {
  createSemaphore,
  createSemaphores,
  type Release,
  type Semaphore,
  type SemaphoreLimits,
  type Semaphores,
  within,
} from './semaphore.ts'
export {
  apiSettings,
  archiveS3Settings,
  elasticsearchSettings,
  kafkaSettings,
  projectorSettings,
  type Read,
  type ReadSettingFile,
  readableFile,
  readSecretFile,
  readSetting,
  readSettings,
  SettingsError,
  sealSettings,
  topicSettings,
} from './settings.ts'
export {
  checkNote,
  createSigningKey,
  isSignerName,
  type Note,
  parseNote,
  parseSigningKey,
  parseVerifierKey,
  type SignedBy,
  type SigningKey,
  signNote,
  textOfSigningKey,
  textOfVerifierKey,
  type VerifierKey,
} from './signing/note.ts'
export { type Ages, ageText, createAges, oldestAge, type PublishedTime, stalePartitions } from './status/ages.ts'
export { STATUS_PAGE_POLICY } from './status/frame.ts'
export { runbooksPage } from './status/runbooks.ts'
export { type Cell, grouped, type StatusPage, statusPageHtml, type Trouble, utcText } from './status/status-page.ts'
export {
  abortReason,
  abortRefusal,
  isTimeUp,
  type Schedule,
  scheduleTimer,
  waitOrAbort,
  whenAllEnd,
  withTimeLimit,
} from './time-limits.ts'
export { endAtUnhandledErrors } from './unhandled-errors.ts'
export { createWeightedSemaphore, limitConcurrency, shared, type WeightedSemaphore } from './weighted-semaphore.ts'
