/** Every limit of the API: what it counts, its unit, and the reason. test/api/limits.test.ts checks their relations. */
import { PAGE_BYTES_MAX, RECORD_VALUE_BYTES_MAX } from '../schemas/limits.ts'

/** Characters of a request target. The longest valid one, with both filters, has under 400. */
export const TARGET_LENGTH_MAX = 4_096

/** Bytes of the raw headers of a request, and their number. */
export const HEADERS_BYTES_MAX = 8 * 1024
export const HEADERS_COUNT_MAX = 64

/** Bytes of request line and headers at which Node's parser fails: enough to tell a long target from long headers. */
export const PARSER_BYTES_MAX = 16 * 1024

/**
 * Waiting for the next change. In order: seconds that a request may wait; milliseconds between two searches for all
 * waiting requests; milliseconds after a search that failed; maximum age of a search that may answer; requests that one
 * search may wake; milliseconds between two searches for the filters of one organization, less than the maximum age.
 */
export const WAIT_SECONDS_MAX = 60
export const LOOK_INTERVAL = 34
export const LOOK_RETRY_INTERVAL = 500
export const LOOK_AGE_MAX = 1_000
export const WAKES_PER_LOOK = 50
export const FIND_INTERVAL = 500

/** Seconds for which a client may use an answer as of a change without asking: new rules can change it. */
export const FIXED_AGE_SECONDS = 3_600

/** Bytes of a body that is left unread. A longer one is refused. No operation has a body. */
export const BODY_BYTES_MAX = 64 * 1024

/** Milliseconds for the headers of a request (408 within 10 s), for all of it, and between two checks of the clock. */
export const HEADERS_TIME_MAX = 9_500
export const REQUEST_TIME_MAX = 14_500
export const TIMEOUT_CHECK_INTERVAL = 250

/** Milliseconds that a connection may idle between two requests: longer than the usual client keeps one. */
export const KEEP_ALIVE_TIME = 65_000

/** Milliseconds without a byte in either direction. Then the API closes the connection: its client does not read. */
export const SOCKET_SILENCE_MAX = 30_000

/**
 * Connections at once, plain and encrypted. Near the limit, the API closes those that are idle for longest. If none is
 * idle, it closes the new one. Measured with headers half sent: a plain one takes up to 40 KiB of resident memory, an
 * encrypted one 104 KiB. The process takes 120 MiB, its answers 88 MiB, garbage as much again, and 106 MiB more were
 * measured under attack: 402 MiB. The 98 MiB left of 500 MiB hold 2,508 plain connections, or 964 encrypted ones. These
 * limits use some 60 % of that.
 */
export const CONNECTIONS_MAX = 1_500
export const ENCRYPTED_CONNECTIONS_MAX = 600
export const CONNECTION_BYTES = 40 * 1024
export const ENCRYPTED_CONNECTION_BYTES = 104 * 1024

/**
 * Requests that wait for a change at once. Each holds its connection for up to a minute, so waits of all organizations
 * leave half of the connections to others, and those of one organization leave most waits to others. A further request
 * does not wait: its page is read at once, so that it holds a connection for a moment only.
 */
export const WAITS_OF_ORGANIZATION = { permits: 50, queue: 0, waitMax: 0 }
export const WAITS = { permits: CONNECTIONS_MAX / 2, queue: 0, waitMax: 0 }
export const ENCRYPTED_WAITS = { permits: ENCRYPTED_CONNECTIONS_MAX / 2, queue: 0, waitMax: 0 }

/** Milliseconds for all reads of one request, and for one search: Elasticsearch gives up before the API does. */
export const READ_TIME_MAX = 3_000
export const SEARCH_TIME_MAX = 2_500

/** Requests to Elasticsearch at once, below the client's 256 connections. A further one is refused, not queued. */
export const READS_IN_FLIGHT_MAX = 200

/**
 * Requests of one organization that read at once: a fifth of READS_IN_FLIGHT_MAX, so that no organization takes all.
 * Further ones queue for a short time; then they are refused.
 */
export const READS_OF_ORGANIZATION = { permits: READS_IN_FLIGHT_MAX / 5, queue: 200, waitMax: 2_000 }

/**
 * Requests in flight, of one key and of one organization: from authentication until the answer is delivered or the
 * connection is closed. One client uses far fewer, and fewer keep Elasticsearch busy. A further request is refused at
 * once.
 */
export const IN_FLIGHT_OF_KEY = { permits: 100, queue: 0, waitMax: 0 }
export const IN_FLIGHT_OF_ORGANIZATION = { permits: 200, queue: 0, waitMax: 0 }

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
 * much as the held bytes (see `main.ts`). One key may hold the largest page and ask for the next one.
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
 * Bytes of answers in delivery, of one key and of one organization. A key may have two of the largest pages and small
 * answers in delivery. An organization may have half of the bytes that large answers may hold: however slowly its
 * clients read, the other half is free for large answers of others.
 */
export const ANSWERS_IN_DELIVERY_OF_KEY = 2 * PAGE_BYTES_MAX + SMALL_ANSWER_BYTES
export const ANSWERS_IN_DELIVERY_OF_ORGANIZATION = (ANSWERS_HELD_MAX - SMALL_ANSWERS_RESERVE) / 2

/**
 * Bytes of reads above which a request waits for the turn of its organization. If the answer is a copy, the limit is
 * SMALL_ANSWER_BYTES. With that limit, all reads that an organization may have at once (READS_OF_ORGANIZATION, 40) hold
 * less than a key may, and one more has room for its answer.
 */
export const LARGE_READ_BYTES = 4 * SMALL_ANSWER_BYTES

/**
 * Large answers of an organization that are read and made at once. If two ran at once, both could hold their reads, and
 * neither would have room for its answer. Half of the permitted reads may queue here; the other half serves small
 * answers.
 */
export const LARGE_ANSWERS_OF_ORGANIZATION = { permits: 1, queue: READS_OF_ORGANIZATION.permits / 2, waitMax: 2_000 }

/**
 * Large answers of all organizations at once: while one is made, its parts and copies take several times the counted
 * bytes. Each organization has one request in this queue, so that organizations take turns.
 */
export const LARGE_ANSWERS = { permits: 2, queue: 200, waitMax: 2_000 }

/** Bytes reserved for the first page that is read of an organization, and the minimum for a record. */
export const UNKNOWN_ANSWER_BYTES = SMALL_ANSWER_BYTES / 2
export const RECORD_BYTES_EXPECTED = 64 * 1024

/** Bytes around each record in an answer of Elasticsearch: its id, its fields, its sort value. */
export const RECORD_FRAME_BYTES = 1_024

/**
 * Milliseconds for the delivery of any answer, and bytes a second that a larger one must reach. A telephone at 16 KiB/s
 * gets a page of 200 payouts with 6 lines each (247 KB) in 15 s. The largest page may take two and a half minutes.
 */
export const DELIVERY_TIME_MIN = 30_000
export const DELIVERY_RATE_MIN = 128 * 1024

/**
 * Bytes of an answer that are encrypted at once. An encrypted copy of a whole answer would be memory that no budget
 * counts.
 */
export const ENCRYPTED_AT_ONCE = 256 * 1024

/** Requests that a connection may send ahead while one is answered. A connection that sends more is closed. */
export const REQUESTS_AHEAD_MAX = 100

/** Bytes of a stored body: the event, and the fields that only the answer has. */
export const BODY_STORED_MAX = RECORD_VALUE_BYTES_MAX + 64 * 1024

/** Milliseconds for Redis to count a request before this process does, to connect, and between two tries of either. */
export const REDIS_ANSWER_TIME_MAX = 500
export const REDIS_CONNECT_TIME_MAX = 1_000
export const REDIS_RETRY_INTERVAL = 1_000
/** Milliseconds between two pings on an idle Redis connection. After twice that without an answer it is replaced. */
export const REDIS_PING_INTERVAL = 1_000
/** Requests that wait for Redis at once. This process counts any further one. */
export const REDIS_QUEUE_MAX = 10_000

/** Unknown keys that one address may try in a window, the seconds of the window, and addresses remembered. */
export const FAILURES_PER_ADDRESS = 300
export const FAILURES_WINDOW_SECONDS = 60
export const ADDRESSES_REMEMBERED = 10_000

/** Log lines about requests without a valid key or over a limit: of one address, of all, and seconds of the window. */
export const REFUSALS_LOGGED = 10
export const REFUSALS_LOGGED_IN_ALL = 1_000
export const REFUSALS_LOGGED_SECONDS = 60

/** Characters shown of an unknown parameter's name: fewer than a key has, more than any parameter. */
export const PARAMETER_NAME_SHOWN = 16

/**
 * Look-ups of keys that were never valid in this process: at once (a fifth of READS_IN_FLIGHT_MAX), in the queue, and
 * milliseconds of waiting. The queue is long, because after a start it has the keys of all clients. A look-up takes
 * milliseconds.
 */
export const KEY_LOOKUPS = { permits: READS_IN_FLIGHT_MAX / 5, queue: 2_000, waitMax: READ_TIME_MAX }

/** The same for addresses that tried too many unknown keys: few, so that only those who try keys wait. */
export const KEY_LOOKUPS_EXHAUSTED = { permits: 8, queue: 64, waitMax: 1_000 }

/** Records that can be requested at once, whatever their size. */
export const RECORDS_SURE = Math.floor(ANSWER_BYTES_MAX / BODY_STORED_MAX)

/** Records of the largest size requested at once for a page. They fill it and fit in the budget of one key. */
export const LARGE_RECORDS_ASKED = Math.floor(PAGE_BYTES_MAX / BODY_STORED_MAX) + 2

/** Maximum bytes of any body but a payout's: these bodies have few texts, each of at most 1,000 code points. */
export const PLAIN_RECORD_BYTES_MAX = 32 * 1024

/** Organizations remembered: their last bytes, and that they have records. Also sizes by list, organization, filter. */
export const ORGANIZATIONS_REMEMBERED = 10_000

/** Cursors and changes whose sort value is cached, cursors without a change behind them, and instants. */
export const CURSORS_REMEMBERED = 10_000
export const LAST_CURSORS_REMEMBERED = 10_000
export const AS_OF_REMEMBERED = 10_000

/**
 * Milliseconds that a cursor without a change behind it is remembered: a client that follows the feed waits again
 * sooner. The search for all waiting requests begins at the oldest of their positions.
 */
export const LAST_CURSOR_AGE_MAX = 10_000

/**
 * An instant is over if a later event proves it, or if the projection's time is this many milliseconds after it. The
 * broker sets a record's time before consumers can read the record. All replicas must have it first (up to 30 s with
 * Kafka's default of `replica.lag.time.max.ms`), or its transaction must be committed. Clocks also differ.
 */
export const AS_OF_MARGIN = 30_000

/** Bytes of records on a page of a payout's history: the difference of each can be as large as two records. */
export const HISTORY_BYTES_MAX = PAGE_BYTES_MAX / 4

/**
 * Lines and bytes of long work without a pause: a few milliseconds. No work may hold the thread for more than 20 ms,
 * even on a machine that is also used for other work.
 */
export const SLICE = { items: 1_000, bytes: 1024 * 1024 }

/**
 * Totals. In order: combinations of period, currency and amount in one answer (parsed without a pause, within 15 ms);
 * records that one query covers; sums made at once, in all and of one organization (a fifth), beyond which a request
 * waits; milliseconds for one sum.
 */
export const TOTALS_AMOUNTS = 5_000
export const TOTALS_RECORDS = 20_000
export const TOTALS_AT_ONCE = 5
export const TOTALS_OF_ORGANIZATION = 1
export const TOTALS_TIME_MAX = 30_000

/** Rows of totals that are remembered, of all organizations and moments: some tens of MB. */
export const TOTALS_ROWS_REMEMBERED = 200_000

/**
 * Milliseconds that the result of a look-up of a key is cached, valid or unknown. A revocation takes effect within 5 s:
 * the projector may need 3.
 */
export const KEY_CACHE_TIME = 2_000

/** Keys cached, valid and unknown ones apart: tries of unknown keys cannot evict valid ones. */
export const KEYS_REMEMBERED = 10_000

/** Seconds of Retry-After, chosen at random: minimum and maximum. */
export const RETRY_AFTER_MIN = 1
export const RETRY_AFTER_MAX = 3

/**
 * A stop has 10 s in all. In order: milliseconds until the last request is ended, drain included; milliseconds for
 * requests to the admin port, which closes last; milliseconds until the process ends by force.
 */
export const STOP_TIME_MAX = 8_000
export const ADMIN_STOP_TIME = 250
export const STOP_TIMEOUT = 9_000

/** Milliseconds between two checks of the certificate files. */
export const CERTIFICATE_CHECK_INTERVAL = 2_000

/** Time that a node may look for its master: a fraction of READY_TIME_MAX, so that another node can be asked, too. */
export const MASTER_WAIT = '400ms'

/** Milliseconds for a readiness check. */
export const READY_TIME_MAX = 2_000

/** Milliseconds between two readiness checks after a start that was not ready. */
export const READY_INTERVAL = 1_000

/**
 * Bytes of log lines in one write, and milliseconds until a write at the latest. One write for each line would take a
 * tenth of the time of a page.
 */
export const LOG_BUFFER_BYTES = 8 * 1024
export const LOG_FLUSH_INTERVAL = 100

/** Milliseconds between two reads of the document of all times. At rest they add to the age of `Projection-Time`. */
export const TIMES_INTERVAL = 250

/**
 * After a swap, the new live generation may be behind the previous one. In order: milliseconds between two reads of its
 * position; maximum number of these reads. Together they take less than a request may.
 */
export const SWAP_POLL_INTERVAL = 25
export const SWAP_POLLS_MAX = 60

/** Milliseconds that a check of the index ids is valid, and the age at which it is repeated in the background. */
export const INDICES_CACHE_TIME = 2_000
export const INDICES_CHECK_INTERVAL = 1_000
/** Tries to read the ids of indices, if nodes do not answer. */
export const INDICES_CHECK_TRIES = 6

/**
 * The audit log: milliseconds that an answer waits for its line; bytes of lines that wait, and of one write (a batch of
 * Kafka may have 1 MiB); milliseconds between two log lines about lost ones.
 */
export const AUDIT_WAIT_MAX = 2_000
export const AUDIT_BYTES_MAX = 4 * 1024 * 1024
export const AUDIT_BATCH_BYTES = 512 * 1024
export const AUDIT_REPORT_INTERVAL = 10_000

/** Milliseconds that the last lines of the audit log may take at the end of the process. */
export const AUDIT_END_TIME = 500

/** Milliseconds that a request to Kafka may take, and its retries. An answer waits for AUDIT_WAIT_MAX at most. */
export const AUDIT_KAFKA_TIMEOUT = 3_000
export const AUDIT_KAFKA_RETRIES = 3
