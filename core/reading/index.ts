/** The reading library: pages, moments, totals, waits and sealed texts. It knows no HTTP. */
export { type ApiKeyCache, createApiKeyCache, type KeyHolder, worksFrom } from './api-key-cache.ts'
export { createIndexChecks, keysChecked, searchesPermitted } from './check-indices.ts'
export type { CheckpointRead } from './checkpoint/read-checkpoint.ts'
export {
  ANSWERS_REMEMBERED,
  AS_OF_MARGIN,
  CHECKPOINT_TIME_MAX,
  KEYS_REMEMBERED,
  READS_OF_ORGANIZATION,
  READY_TIME_MAX,
} from './limits.ts'
export { joinParts, lengthOf, type Pace, type Part, partOf, usualPace } from './pace.ts'
export { createAgreed, isCertain, type Proofs } from './pages/agreed.ts'
export type { PageOfIds } from './pages/read-by-ids.ts'
export type { HistoryPage } from './pages/read-history.ts'
export { changeNameOf, type Page, recordIdOf, sequenceIn, termsOf } from './pages/read-list.ts'
export {
  hasParameter,
  type ListParameters,
  type Moment,
  momentOf,
  type RecordName,
  readHistoryParameters,
  readId,
  readListParameters,
  readRecordParameters,
  readTotalsParameters,
  refuseParameters,
  textOfName,
} from './pages/read-parameters.ts'
export type { FoundRecord, FoundStatement, RecordAsked } from './pages/read-record.ts'
export type { Added, TotalsRead } from './pages/read-totals.ts'
export {
  changeParts,
  NOT_REPLACED,
  replacementOf,
  textOfChange,
  textOfListed,
  textOfStatement,
  traceFieldsOf,
  withoutBrace,
} from './pages/record-text.ts'
export { createReaders, type Readers } from './readers.ts'
export { type ReferencePage, referenceFiles, referencePages } from './reference.ts'
export { holdKeys } from './sealed/hold-keys.ts'
export { keyFileOf, readSealKey, receiptFileOf } from './sealed/key-directory.ts'
export { type KeySources, keySourcesOf, readFrom } from './sealed/key-sources.ts'
export { noSealKeys, type ReadSealKey } from './sealed/key-store.ts'
export { createKeyReads } from './sealed/key-turns.ts'
export { createOpenRecords, type OpenRecords } from './sealed/open-records.ts'
export { reportRefusals } from './sealed/report-refusals.ts'
export { createVault, type Vault, type VaultAnswer, type VaultOptions } from './sealed/vault.ts'
export type { ChangeWatch, RunPermitted } from './watch-changes.ts'
