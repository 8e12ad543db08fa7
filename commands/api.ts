/** The functions and types of the API that commands use. Commands import api/ only through this file. */
export { pingRedis } from '../api/access/ping-redis.ts'
export { referenceFiles } from '../api/admin/reference.ts'
export { textOfChange } from '../api/answer/answer-changes.ts'
export { textOfListed, textOfStatement } from '../api/answer/record-json.ts'
export { createSearchClient, requireAnswer, type SearchClient } from '../api/elasticsearch/client.ts'
export { bodyOf, smallSearch } from '../api/elasticsearch/slice-documents.ts'
export { createTransport } from '../api/elasticsearch/transport.ts'
export { Refusal, unavailable } from '../api/failures.ts'
export { AS_OF_MARGIN } from '../api/limits.ts'
export { createCheckIndices } from '../api/read/check-indices.ts'
export { notReplacedRange, type ReadPosition, visibleRange } from '../api/read/position.ts'
export { changeNameOf, type Page, recordIdOf } from '../api/read/read-list.ts'
export {
  type ListParameters,
  type Moment,
  momentOf,
  readListParameters,
  textOfName,
} from '../api/read/read-parameters.ts'
export type { TotalsRead } from '../api/read/read-totals.ts'
export { createReaders } from '../api/read/readers.ts'
export { holdKeys } from '../api/sealed/hold-keys.ts'
export { keyFileOf, readSealKey, receiptFileOf } from '../api/sealed/key-directory.ts'
export { type KeySources, keySourcesOf, readFrom } from '../api/sealed/key-sources.ts'
export { noSealKeys, type ReadSealKey } from '../api/sealed/key-store.ts'
export { createOpenRecords, type OpenRecords } from '../api/sealed/open-records.ts'
export { reportRefusals } from '../api/sealed/report-refusals.ts'
export { createVault, type Vault, type VaultAnswer, type VaultOptions } from '../api/sealed/vault.ts'
export { type Schedule, scheduleTimer } from '../api/time-limits.ts'
