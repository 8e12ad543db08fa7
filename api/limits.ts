/**
 * Every limit of the API, in one place: what it counts, in which unit, and why it is what it is.
 * The relations between them are asserted in test/api/limits.test.ts.
 */
import { PAGE_BYTES_MAX, RECORD_VALUE_BYTES_MAX } from '../schemas/limits.ts'

/** Characters of a request target. The longest that means something here is under 200. */
export const TARGET_LENGTH_MAX = 4_096

/** Bytes of a request's headers as they came, and how many there may be. */
export const HEADERS_BYTES_MAX = 8 * 1024
export const HEADERS_COUNT_MAX = 64

/** Bytes of request line and headers at which Node's parser gives up: room to tell a long target from long headers. */
export const PARSER_BYTES_MAX = 16 * 1024

/** Bytes of a body that is merely left unread; a longer one is refused. No operation has a body. */
export const BODY_BYTES_MAX = 64 * 1024

/** Milliseconds until a request's headers are complete, until it is complete, and between two looks at the clock: 408 within 10 s. */
export const HEADERS_TIME_MAX = 9_500
export const REQUEST_TIME_MAX = 14_500
export const TIMEOUT_CHECK_INTERVAL = 250

/** Milliseconds a connection may idle between two requests: longer than the usual client keeps one. */
export const KEEP_ALIVE_TIME = 65_000

/** Milliseconds without a byte in either direction after which a connection is ended: a client that does not take its answer. */
export const SOCKET_SILENCE_MAX = 30_000

/** Connections at once; further ones are closed by the server. */
export const CONNECTIONS_MAX = 10_000

/** Milliseconds for all that one request asks of Elasticsearch, and what Elasticsearch is told so that it gives up before we do. */
export const READ_TIME_MAX = 3_000
export const SEARCH_TIME_MAX = 2_500

/** Requests to Elasticsearch at once; beyond it a request is refused rather than queued. Below the client's 256 connections. */
export const READS_IN_FLIGHT_MAX = 200

/** Milliseconds that a multi-get waits for the one under way, to go together with others that came since, and the documents that they ask for together. */
export const GATHER_TIME_MAX = 5
export const GATHERED_NAMES = 32

/** Bytes of an answer of Elasticsearch that are collected: a page of records, and room for what is around them. */
export const ANSWER_BYTES_MAX = 4 * PAGE_BYTES_MAX

/** Bytes a stored body can have: the event it was made of, and the fields that only the answer has. */
export const BODY_STORED_MAX = RECORD_VALUE_BYTES_MAX + 64 * 1024

/** Milliseconds until Redis has counted a request, or this process does; until it is connected; and between two tries of either. */
export const REDIS_ANSWER_TIME_MAX = 500
export const REDIS_CONNECT_TIME_MAX = 1_000
export const REDIS_RETRY_INTERVAL = 1_000
/** Milliseconds between two signs of life on a connection to Redis that is idle; twice that without an answer, and it is made anew. */
export const REDIS_PING_INTERVAL = 1_000
/** Requests that wait for an answer of Redis at once: beyond them this process counts. */
export const REDIS_QUEUE_MAX = 10_000

/** Attempts without a valid key that one address may make in so many seconds, and addresses remembered. */
export const FAILURES_PER_ADDRESS = 300
export const FAILURES_WINDOW_SECONDS = 60
export const ADDRESSES_REMEMBERED = 10_000

/** Records that can be asked for at once whatever their size. */
export const RECORDS_SURE = Math.floor(ANSWER_BYTES_MAX / BODY_STORED_MAX)

/** Bytes that no body but a payout's can have: its texts are few, and each has at most 1,000 code points. */
export const PLAIN_RECORD_BYTES_MAX = 32 * 1024

/** Organizations of which is remembered how large their records are, and that they have any. */
export const ORGANIZATIONS_REMEMBERED = 10_000

/** Cursors and changes whose place is remembered, and instants of organizations. */
export const CURSORS_REMEMBERED = 10_000
export const MOMENTS_REMEMBERED = 10_000

/**
 * Milliseconds that an instant must lie before the projection's time to be over, where no later event says so. A record gets its time from its
 * broker before it can be read: until all copies have it (30 s with Kafka's own `replica.lag.time.max.ms`), or its transaction is committed; and
 * two clocks are never the same.
 */
export const AS_OF_SETTLED = 30_000

/** Bytes of records on a page of a payout's history: each comes with its difference, which can be as large as both. */
export const HISTORY_BYTES_MAX = PAGE_BYTES_MAX / 4

/**
 * Totals: combinations of period, currency and amount that are asked for at once, below what Elasticsearch makes in one answer (65,536);
 * records that are looked through at once; summings at once, half of them of one organization, beyond which a request waits; and the milliseconds that one may take.
 */
export const TOTALS_AMOUNTS = 20_000
export const TOTALS_RECORDS = 20_000
export const TOTALS_AT_ONCE = 4
export const TOTALS_TIME_MAX = 30_000

/** Rows of totals that are remembered, of all organizations and moments together: some tens of MB. */
export const TOTALS_ROWS_REMEMBERED = 200_000

/** Milliseconds a looked-up key is believed: revocation is effective within 5 s, of which the projector may need 3. */
export const KEY_BELIEVED_FOR = 2_000

/** Keys remembered, known and unknown ones apart: whoever tries keys cannot push out those that are. */
export const KEYS_REMEMBERED = 10_000

/** Seconds after which a client should try again when records cannot be read now. */
export const UNAVAILABLE_RETRY_AFTER = 1

/** Milliseconds for requests under way when the process is told to stop: it has 10 s in all. */
export const STOP_TIME_MAX = 8_000

/** Milliseconds a readiness check may take. */
export const READY_TIME_MAX = 2_000

/** Milliseconds between two looks whether the API has become ready, after a start that found it was not. */
export const READY_INTERVAL = 1_000

/** Bytes of log lines that are written at once, and milliseconds after which they are written at the latest: a write a line costs a tenth of a page. */
export const LOG_BUFFER_BYTES = 8 * 1024
export const LOG_FLUSH_INTERVAL = 100

/**
 * Milliseconds between two looks at the positions of a generation that was made live and is not yet as far as the one before, and how
 * often it is looked: together less than a request may take.
 */
export const SWAP_WAIT = 25
export const SWAP_WAITS = 60
