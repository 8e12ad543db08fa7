/** The limits of the ledger library: what each counts, its unit, and its reason. */
import { getHeapStatistics } from 'node:v8'

const MiB = 1024 * 1024

/** Bytes of one partition's records that are projected together. A larger record is projected alone. */
export const BATCH_BYTES = 1 * MiB

/**
 * Bytes of a parked record that is kept whole, as JSON with base64. Elasticsearch counts each byte five times, and
 * always refuses a document that counts for more than a tenth of its heap: with 1 GB of heap this is nearly the most.
 */
export const PARKED_BYTES_MAX = 16 * MiB

/** Records that are projected together. The documents they replace are loaded, and may be much larger. */
export const BATCH_RECORDS = 500

/** Documents that are asked for at once. */
export const DOCUMENTS_ASKED = 1_000

/**
 * Bytes of documents cached per partition, so that Elasticsearch need not be asked again: in a process less than a
 * sixth of the heap. Documents replaced soon are found here. Twice the bytes for payouts and chains took 30 MiB more in
 * a replay, and its events came no faster.
 */
const CACHE_BYTES_PER_PARTITION = Math.min(8 * MiB, Math.floor(getHeapStatistics().heap_size_limit / 40))

/** How the cache is divided: payouts with their chains, and heads with everything else. */
export const CACHE_LINE_BYTES_PER_PARTITION = Math.floor(CACHE_BYTES_PER_PARTITION / 2)

/** Reps, periods and the like: some thousands, each read again only after thousands of payouts. */
export const CACHE_HEAD_BYTES_PER_PARTITION = Math.floor(CACHE_BYTES_PER_PARTITION / 2)
