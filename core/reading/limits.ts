/** The limits of the reading library: what each counts, its unit, and its reason. */
import { PAGE_BYTES_MAX } from '../../schemas/limits.ts'
import { BODY_STORED_MAX, READS_IN_FLIGHT_MAX } from '../store/index.ts'

/**
 * Waiting for the next change. In order: milliseconds between two searches for all waiting requests; milliseconds after
 * a search that failed; maximum age of a search that may answer; requests that one search may wake; milliseconds
 * between two searches for the filters of one organization, less than the maximum age.
 */
export const LOOK_INTERVAL = 34
export const LOOK_RETRY_INTERVAL = 500
export const LOOK_AGE_MAX = 1_000
export const WAKES_PER_LOOK = 50
export const FIND_INTERVAL = 500

/**
 * Requests of one organization that read at once: a fifth of READS_IN_FLIGHT_MAX, so that no organization takes all.
 * Further ones queue for a short time; then they are refused.
 */
export const READS_OF_ORGANIZATION = { permits: READS_IN_FLIGHT_MAX / 5, queue: 200, waitMax: 2_000 }

/** Characters shown of an unknown parameter's name: fewer than a key has, more than any parameter. */
export const PARAMETER_NAME_SHOWN = 16

/** Records of the largest size requested at once for a page. They fill it and fit in the budget of one key. */
export const LARGE_RECORDS_ASKED = Math.floor(PAGE_BYTES_MAX / BODY_STORED_MAX) + 2

/** Maximum bytes of any body but a payout's: these bodies have few texts, each of at most 1,000 code points. */
export const PLAIN_RECORD_BYTES_MAX = 32 * 1024

/** Cursors and changes whose sort value is cached, cursors without a change behind them, instants, and answers. */
export const CURSORS_REMEMBERED = 10_000
export const LAST_CURSORS_REMEMBERED = 10_000
export const AS_OF_REMEMBERED = 10_000
export const ANSWERS_REMEMBERED = 10_000

/**
 * Milliseconds that a cursor without a change behind it is remembered: a client that follows the feed waits again
 * sooner. The search for all waiting requests begins at the oldest of their positions.
 */
export const LAST_CURSOR_AGE_MAX = 10_000

/**
 * An instant is over if a later event proves it, or if the projection's time is this many milliseconds after it. Clocks
 * differ, and a leader that was just replaced may have told the end. The projection's time counts records that nobody
 * can read yet, however long they wait for replicas. Only brokers before 2.8 do not tell of these.
 */
export const AS_OF_MARGIN = 30_000

/**
 * Milliseconds between two searches that must agree before a process keeps what they found, and in which what one of
 * them found is known. A node that returns answers from old copies for some 150 ms.
 */
export const AGREED_AFTER = 1_000

/** Bytes of records on a page of a payout's history: the difference of each can be as large as two records. */
export const HISTORY_BYTES_MAX = PAGE_BYTES_MAX / 4

/** Changes whose sequence a process remembers: some 100 bytes each. */
export const SEQUENCES_REMEMBERED = 10_000
/** Changes that one search skips: Elasticsearch skips up to 10,000 hits. */
export const CHANGES_SKIPPED_MAX = 10_000

/**
 * Totals. In order: combinations of period, currency and amount in one answer (parsed without a pause, within 15 ms);
 * records that one query covers; sums made at once, in all and of one organization (a fifth), beyond which a request
 * waits; milliseconds for one sum. A request waits READ_TIME_MAX for it; the sum goes on for the next request.
 */
export const TOTALS_AMOUNTS = 5_000
export const TOTALS_RECORDS = 20_000
export const TOTALS_AT_ONCE = 5
export const TOTALS_OF_ORGANIZATION = 1
export const TOTALS_TIME_MAX = 30_000

/**
 * Totals of a deal: payouts and bytes of one search. A page is held beside the pages of lists. If the payouts are
 * larger than those of the page before, their number limits the answer.
 */
export const DEAL_PAGE_PAYOUTS = 100
export const DEAL_PAGE_BYTES = 4 * 1024 * 1024

/**
 * Checkpoints. In order: milliseconds in which an organization without a further change gets one signature;
 * milliseconds that are added to the usual time of a request (`ORDER_MS` in `client/src/checkpoint.ts` and `ORDER` in
 * the Python client count with both); walks at once, of all and of one organization; changes and bytes of one search.
 * A page is held beside the pages of lists.
 */
export const CHECKPOINT_AGE_MAX = 60_000
export const CHECKPOINT_TIME_MAX = 15_000
export const CHECKPOINT_WALKS = { permits: 2, queue: 50, waitMax: CHECKPOINT_TIME_MAX }
export const CHECKPOINT_WALKS_OF_ORGANIZATION = { permits: 1, queue: 10, waitMax: CHECKPOINT_TIME_MAX }
export const CHECKPOINT_PAGE_CHANGES = 1_000
export const CHECKPOINT_PAGE_BYTES = DEAL_PAGE_BYTES

/**
 * Bytes of all remembered totals together, and the bytes of one: for itself, for each character of its name, and for
 * each row besides its texts. Measured: 0.5 KiB with short ids and no row, 1.1 KiB
 * with the longest.
 */
export const TOTALS_BYTES_REMEMBERED = 32 * 1024 * 1024
export const TOTALS_BYTES = { each: 448, character: 3, row: 256 }

/**
 * Milliseconds that the result of a look-up of a key is cached, valid or unknown. A revocation takes effect within 5 s:
 * the projector may need 3.
 */
export const KEY_CACHE_TIME = 2_000

/** Milliseconds in which keys cannot have been restored, adopted and read again: a projector needs longer to start. */
export const KEYS_SERVED_TIME = 2_000

/** Keys cached, valid and unknown ones apart: tries of unknown keys cannot evict valid ones. */
export const KEYS_REMEMBERED = 10_000

/** Milliseconds for a readiness check. */
export const READY_TIME_MAX = 2_000

/** Milliseconds that a check of the index ids is valid, and the age at which it is repeated in the background. */
export const INDICES_CACHE_TIME = 2_000
export const INDICES_CHECK_INTERVAL = 1_000

/** Tries to read the ids of indices, if nodes do not answer. */
export const INDICES_CHECK_TRIES = 6
