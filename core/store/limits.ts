/** The limits of the store library: what each counts, its unit, and its reason. */
import { PAGE_BYTES_MAX, RECORD_VALUE_BYTES_MAX } from '../../schemas/limits.ts'

const MiB = 1024 * 1024

/** Bytes and documents of a bulk request. Elasticsearch refuses above 100 MB; 500 to 2,000 documents measured best. */
export const BULK_BYTES = 8 * MiB
export const BULK_DOCUMENTS = 2_000

/**
 * Requests of several partitions are combined up to this: bytes of bulk requests, documents of others. A larger bulk
 * request than SMALL_BULK_BYTES is sent alone: then there is much to write, and several are in flight.
 */
export const SMALL_BULK_BYTES = 256 * 1024
export const BATCHED_BYTES = 2 * MiB
export const BATCHED_IDS = 200

/**
 * Lost connections, and refusals for lack of memory, halve a bulk request, down to these bytes. The limits of proxies
 * are not lower, and most connections are lost for other reasons.
 */
export const BULK_BYTES_MIN = 1 * MiB

/** Ids of one multi-get. */
export const MGET_IDS = 1_000

/** Bytes of the response to a multi-get: documents may be large. The rest is requested separately. */
export const MGET_BYTES = 16 * MiB

/** Milliseconds without an answer from Elasticsearch after which we are not ready. */
export const ELASTICSEARCH_SLOW_MS = 5_000

/**
 * Milliseconds that a write waits for the refresh under way, at most. It waits for no refresh whose delay is longer:
 * no reader waits for that one.
 */
export const WRITES_HELD_MS = 250

/** Milliseconds between two reads of Elasticsearch's clock. */
export const CLOCK_INTERVAL_MS = 5_000
/** Answers without a clock, before the first one with it, after which this machine's clock counts alone. */
export const CLOCK_SILENCES = 3

/** Milliseconds that two clocks may differ. `as_of` waits several times as long before an instant counts as over. */
export const CLOCKS_APART_MS = 5_000

/** Milliseconds between two copies of the published positions, and between two checks whether a copy is due. */
export const KEEP_POSITIONS_MS = 60_000
export const KEEP_POSITIONS_LOOK_MS = 2_000

/** Milliseconds between two identifications of the source. */
export const IDENTIFY_INTERVAL_MS = 10_000

/** Milliseconds that receipts and followers rely on a check of the ids of indices. The API relies on one for longer. */
export const INTACT_REMEMBERED_MS = 1_000

/** Milliseconds for all reads of one request, and for one search: Elasticsearch gives up before the API does. */
export const READ_TIME_MAX = 3_000
export const SEARCH_TIME_MAX = 2_500

/** Requests to Elasticsearch at once, below the client's 256 connections. A further one is refused, not queued. */
export const READS_IN_FLIGHT_MAX = 200

/** Milliseconds that a multi-get waits for the one in flight, and documents in one batch of multi-gets. */
export const BATCH_TIME_MAX = 5
export const BATCHED_DOCUMENTS = 32

/**
 * Bytes of an answer of Elasticsearch that are collected: a page of records, and the JSON around them. A longer answer
 * is dropped, and fewer records are requested. The limit is below the budget of one key. An answer above that budget
 * would be refused each time.
 */
export const ANSWER_BYTES_MAX = 44 * 1024 * 1024

/**
 * Bytes of answers held at once, from the request to Elasticsearch until the client has them: of this process, of one
 * organization, of one key. Resident memory stays under 500 MiB: the process takes some 120 MiB, and garbage can be as
 * much as the held bytes (see `api/heap-growth.ts`). One key may hold the largest page and ask for the next one.
 */
export const ANSWERS_HELD_MAX = 88 * 1024 * 1024
export const ANSWERS_HELD_OF_ORGANIZATION = 70 * 1024 * 1024
export const ANSWERS_HELD_OF_KEY = 48 * 1024 * 1024

/** Bytes of held answers above which the garbage collector runs earlier. Ordinary pages stay far below. */
export const MUCH_IS_HELD = 8 * 1024 * 1024

/** Bytes of a small answer, and the budget reserved for small ones. A group of reads without room is refused whole. */
export const SMALL_ANSWER_BYTES = 1024 * 1024
export const SMALL_ANSWERS_RESERVE = 16 * 1024 * 1024

/**
 * Bytes of reads above which a request waits for the turn of its organization. If the answer is a copy, the limit is
 * SMALL_ANSWER_BYTES. With that limit, all reads that an organization may have at once (`READS_OF_ORGANIZATION`, 40)
 * together hold less than one key may hold, and leave room for one more answer.
 */
export const LARGE_READ_BYTES = 4 * SMALL_ANSWER_BYTES

/** Organizations remembered: their last bytes, and that they have records. Also sizes by list, organization, filter. */
export const ORGANIZATIONS_REMEMBERED = 10_000

/**
 * Bytes of answers in delivery, of one key and of one organization. A key may have two of the largest pages and small
 * answers in delivery. An organization may have half of the bytes that large answers may hold: however slowly its
 * clients read, the other half is free for large answers of others.
 */
export const ANSWERS_IN_DELIVERY_OF_KEY = 2 * PAGE_BYTES_MAX + SMALL_ANSWER_BYTES
export const ANSWERS_IN_DELIVERY_OF_ORGANIZATION = (ANSWERS_HELD_MAX - SMALL_ANSWERS_RESERVE) / 2

/** Bytes reserved for the first page that is read of an organization, and the minimum for a record. */
export const UNKNOWN_ANSWER_BYTES = SMALL_ANSWER_BYTES / 2
export const RECORD_BYTES_EXPECTED = 64 * 1024

/** Bytes reserved for a search that finds little: a count, or the fields of one record. More counts as it arrives. */
export const SMALL_SEARCH_BYTES = 16 * 1024

/** Bytes around each record in an answer of Elasticsearch: its id, its fields, its sort value. */
export const RECORD_FRAME_BYTES = 1_024

/** Bytes of a stored body: the event, and the fields that only the answer has. */
export const BODY_STORED_MAX = RECORD_VALUE_BYTES_MAX + 64 * 1024

/** Records that can be requested at once, whatever their size. */
export const RECORDS_SURE = Math.floor(ANSWER_BYTES_MAX / BODY_STORED_MAX)

/**
 * Lines and bytes of long work without a pause: a few milliseconds. No work may hold the thread for more than 20 ms,
 * even on a machine that is also used for other work.
 */
export const SLICE = { items: 1_000, bytes: 1024 * 1024 }

/** Time that a node may look for its master: a fraction of READY_TIME_MAX, so that another node can be asked, too. */
export const MASTER_WAIT = '400ms'

/** Milliseconds between two reads of the document of all times. At rest they add to the age of `Projection-Time`. */
export const TIMES_INTERVAL = 250

/**
 * After a swap, the new live generation may be behind the previous one. In order: milliseconds between two reads of its
 * position; maximum number of these reads. Together they take less than a request may.
 */
export const SWAP_POLL_INTERVAL = 25
export const SWAP_POLLS_MAX = 60

/** Timeout of a request to Elasticsearch, in milliseconds: everything continues within 30 s of its recovery. */
export const ELASTICSEARCH_TIMEOUT_MS = 20_000
