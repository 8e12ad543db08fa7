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

/**
 * Milliseconds until a request's headers are complete, until it is complete, and between two looks at the clock: 408
 * within 10 s.
 */
export const HEADERS_TIME_MAX = 9_500
export const REQUEST_TIME_MAX = 14_500
export const TIMEOUT_CHECK_INTERVAL = 250

/** Milliseconds a connection may idle between two requests: longer than the usual client keeps one. */
export const KEEP_ALIVE_TIME = 65_000

/**
 * Milliseconds without a byte in either direction after which a connection is ended: a client that does not take its
 * answer.
 */
export const SOCKET_SILENCE_MAX = 30_000

/**
 * Connections at once, plain and encrypted. Near the limit those that are idle for longest are closed; where none is
 * idle, the new one is. Measured with headers half sent: a plain one takes up to 40 KiB of resident memory, an
 * encrypted one 104 KiB. The process takes 120 MiB, its answers 88 MiB and as much again that is not yet collected, and
 * 106 MiB more were measured under attack: 402 MiB. To 500 MiB there are 98 MiB: 2,508 plain connections, or 964
 * encrypted ones; these limits leave a third of it.
 */
export const CONNECTIONS_MAX = 1_500
export const ENCRYPTED_CONNECTIONS_MAX = 600
export const CONNECTION_BYTES = 40 * 1024
export const ENCRYPTED_CONNECTION_BYTES = 104 * 1024

/**
 * Milliseconds for all that one request asks of Elasticsearch, and what Elasticsearch is told so that it gives up
 * before we do.
 */
export const READ_TIME_MAX = 3_000
export const SEARCH_TIME_MAX = 2_500

/**
 * Requests to Elasticsearch at once; beyond it a request is refused rather than queued. Below the client's 256
 * connections.
 */
export const READS_IN_FLIGHT_MAX = 200

/**
 * Requests of one organization that read at once: a fifth of what may be asked of Elasticsearch, so that no
 * organization takes all of it. Further ones wait a moment, in line; then they are refused.
 */
export const READS_OF_ORGANIZATION = { permits: READS_IN_FLIGHT_MAX / 5, queue: 200, waitMax: 2_000 }

/**
 * Requests under way, from their authentication until their answer is delivered or their connection closed: of one key,
 * and of all keys of an organization. Several times what keeps Elasticsearch busy, and what one client uses; beyond it
 * a request is refused at once.
 */
export const UNDER_WAY_OF_KEY = { permits: 100, queue: 0, waitMax: 0 }
export const UNDER_WAY_OF_ORGANIZATION = { permits: 200, queue: 0, waitMax: 0 }

/**
 * Milliseconds that a multi-get waits for the one under way, to go together with others that came since, and the
 * documents that they ask for together.
 */
export const GATHER_TIME_MAX = 5
export const GATHERED_NAMES = 32

/** Bytes of an answer of Elasticsearch that are collected: a page of records, and room for what is around them. */
export const ANSWER_BYTES_MAX = 4 * PAGE_BYTES_MAX

/**
 * Bytes of answers that are held at once, from the question to Elasticsearch until the client has them: of this
 * process, of one organization, of one key. Resident memory stays under 500 MiB: the process itself takes some 120 MiB,
 * and the garbage collector may let as much again wait as is held (see `main.ts`). One key may hold the largest page
 * there can be and ask for the next one.
 */
export const ANSWERS_HELD_MAX = 88 * 1024 * 1024
export const ANSWERS_HELD_OF_ORGANIZATION = 70 * 1024 * 1024
export const ANSWERS_HELD_OF_KEY = 48 * 1024 * 1024

/** Bytes of answers from which on the garbage collector runs earlier: ordinary pages stay far below. */
export const MUCH_IS_HELD = 8 * 1024 * 1024

/**
 * An answer up to this size is small, and the last bytes of the budget are for small ones only: clients with large
 * answers cannot refuse the others.
 */
export const SMALL_ANSWER_BYTES = 1024 * 1024
export const SMALL_ANSWERS_RESERVE = 16 * 1024 * 1024

/**
 * Bytes of reads above which a request waits for the turn of its organization; where the answer is a copy, it does
 * above SMALL_ANSWER_BYTES: so 40 of them hold less than a key may, and one more has room for its answer.
 */
export const LARGE_READ_BYTES = 4 * SMALL_ANSWER_BYTES

/**
 * Large answers of an organization that are read and made at once: one. Two could each hold their reads and have no
 * room left for either answer. So many wait for so many milliseconds: half of the requests that may read go on with
 * small answers.
 */
export const LARGE_ANSWERS_OF_ORGANIZATION = { permits: 1, queue: READS_OF_ORGANIZATION.permits / 2, waitMax: 2_000 }

/**
 * The same of all organizations: while an answer is put together, its parts and copies are several times what is
 * counted. Organizations take turns: each has one request in this line.
 */
export const LARGE_ANSWERS = { permits: 2, queue: 200, waitMax: 2_000 }

/** Bytes that are reserved for a page of an organization that was not read before, and at least for a record. */
export const UNKNOWN_ANSWER_BYTES = SMALL_ANSWER_BYTES / 2
export const RECORD_BYTES_EXPECTED = 64 * 1024

/** Bytes around each record in an answer of Elasticsearch: its id, its fields, its place in the order. */
export const RECORD_FRAME_BYTES = 1_024

/**
 * Milliseconds that any answer may take to be delivered, and bytes a second that a larger one must reach. A telephone
 * on a line of 16 KiB/s gets a page of 200 ordinary payouts (400 KB) in 25 s; the largest page there is may take two
 * and a half minutes.
 */
export const DELIVERY_TIME_MIN = 30_000
export const DELIVERY_RATE_MIN = 128 * 1024

/** Bytes of an answer that are encrypted at once: an encrypted copy of all of it would be memory that nobody counts. */
export const ENCRYPTED_AT_ONCE = 256 * 1024

/** Requests that a connection may send ahead while one is answered. A connection that sends more is closed. */
export const REQUESTS_AHEAD_MAX = 100

/** Bytes a stored body can have: the event it was made of, and the fields that only the answer has. */
export const BODY_STORED_MAX = RECORD_VALUE_BYTES_MAX + 64 * 1024

/**
 * Milliseconds until Redis has counted a request, or this process does; until it is connected; and between two tries of
 * either.
 */
export const REDIS_ANSWER_TIME_MAX = 500
export const REDIS_CONNECT_TIME_MAX = 1_000
export const REDIS_RETRY_INTERVAL = 1_000
/**
 * Milliseconds between two signs of life on a connection to Redis that is idle; twice that without an answer, and it is
 * made anew.
 */
export const REDIS_PING_INTERVAL = 1_000
/** Requests that wait for an answer of Redis at once: beyond them this process counts. */
export const REDIS_QUEUE_MAX = 10_000

/** Keys that were looked up and are none, of one address in so many seconds, and addresses remembered. */
export const FAILURES_PER_ADDRESS = 300
export const FAILURES_WINDOW_SECONDS = 60
export const ADDRESSES_REMEMBERED = 10_000

/**
 * Lines of the log about refusals (401, 429) of one address, and of all addresses, in so many seconds: a flood must not
 * fill the log.
 */
export const REFUSALS_LOGGED = 10
export const REFUSALS_LOGGED_IN_ALL = 1_000
export const REFUSALS_LOGGED_SECONDS = 60

/**
 * Characters of the name of an unknown parameter that are repeated to its client: fewer than a key has, more than any
 * parameter.
 */
export const PARAMETER_NAME_SHOWN = 16

/**
 * Look-ups of keys that were never valid in this process: at once a fifth of what may be asked of Elasticsearch, how
 * many wait, and milliseconds that each waits. After a start the keys of all clients are among them, so that many may
 * wait: a look-up takes milliseconds.
 */
export const KEY_LOOK_UPS = { permits: READS_IN_FLIGHT_MAX / 5, queue: 2_000, waitMax: READ_TIME_MAX }

/**
 * The same for addresses that tried too many keys that are none: few, and a short line, so that it is the one who tries
 * keys that waits.
 */
export const KEY_LOOK_UPS_EXHAUSTED = { permits: 8, queue: 64, waitMax: 1_000 }

/** Records that can be asked for at once whatever their size. */
export const RECORDS_SURE = Math.floor(ANSWER_BYTES_MAX / BODY_STORED_MAX)

/**
 * Records of the largest size that are asked for at once for a page: they fill it. One key's share of the budget has
 * room for them.
 */
export const LARGE_RECORDS_ASKED = Math.floor(PAGE_BYTES_MAX / BODY_STORED_MAX) + 2

/** Bytes that no body but a payout's can have: its texts are few, and each has at most 1,000 code points. */
export const PLAIN_RECORD_BYTES_MAX = 32 * 1024

/** Organizations of which is remembered how large their records are, and that they have any. */
export const ORGANIZATIONS_REMEMBERED = 10_000

/** Cursors and changes whose place is remembered, and instants of organizations. */
export const CURSORS_REMEMBERED = 10_000
export const MOMENTS_REMEMBERED = 10_000

/**
 * Milliseconds that an instant must lie before the projection's time to be over, where no later event says so. A record
 * gets its time from its broker before it can be read: until all copies have it (30 s with Kafka's own
 * `replica.lag.time.max.ms`), or its transaction is committed; and two clocks are never the same.
 */
export const AS_OF_SETTLED = 30_000

/** Bytes of records on a page of a payout's history: each comes with its difference, which can be as large as both. */
export const HISTORY_BYTES_MAX = PAGE_BYTES_MAX / 4

/**
 * Lines and bytes of long work that are done without a pause: a few milliseconds. No piece of work may hold the one
 * thread for more than 20 ms, on a machine that has other things to do, too.
 */
export const SLICE = { items: 1_000, bytes: 1024 * 1024 }

/**
 * Totals: combinations of period, currency and amount that are asked for at once: their answer is parsed in one piece,
 * within 15 ms; records that are looked through at once; summings at once, a fifth of them of one organization, beyond
 * which a request waits; and the milliseconds that one may take.
 */
export const TOTALS_AMOUNTS = 5_000
export const TOTALS_RECORDS = 20_000
export const TOTALS_AT_ONCE = 5
export const TOTALS_OF_ORGANIZATION = 1
export const TOTALS_TIME_MAX = 30_000

/** Rows of totals that are remembered, of all organizations and moments together: some tens of MB. */
export const TOTALS_ROWS_REMEMBERED = 200_000

/** Milliseconds a looked-up key is believed: revocation is effective within 5 s, of which the projector may need 3. */
export const KEY_BELIEVED_FOR = 2_000

/** Keys remembered, valid and unknown ones apart: tries of unknown keys cannot evict valid ones. */
export const KEYS_REMEMBERED = 10_000

/** Seconds after which a client that is refused for now tries again: at least and at most, by chance. */
export const RETRY_AFTER_MIN = 1
export const RETRY_AFTER_MAX = 3

/**
 * Milliseconds when the process is told to stop, which has 10 s in all: until the last request under way is ended, the
 * drain before included; for requests to the admin port, which closes last; and until the process ends whatever holds
 * it.
 */
export const STOP_TIME_MAX = 8_000
export const ADMIN_STOP_TIME = 250
export const STOP_TIMEOUT = 9_000

/** Milliseconds between two looks whether the files of the certificate have changed. */
export const CERTIFICATE_LOOK_INTERVAL = 2_000

/**
 * How long a node that is cut off from the master may look for it before it says so: a fraction of READY_TIME_MAX, in
 * which another node is asked, too.
 */
export const MASTER_WAIT = '400ms'

/** Milliseconds a readiness check may take. */
export const READY_TIME_MAX = 2_000

/** Milliseconds between two looks whether the API has become ready, after a start that found it was not. */
export const READY_INTERVAL = 1_000

/**
 * Bytes of log lines that are written at once, and milliseconds after which they are written at the latest: a write a
 * line costs a tenth of a page.
 */
export const LOG_BUFFER_BYTES = 8 * 1024
export const LOG_FLUSH_INTERVAL = 100

/**
 * Milliseconds between two looks at the positions of a generation that was made live and is not yet as far as the one
 * before, and how often it is looked: together less than a request may take.
 */
export const SWAP_WAIT = 25
export const SWAP_WAITS = 60

/**
 * How long the indices are believed to be the same ones, in ms, and from what age on they are looked at again beside
 * the requests.
 */
export const INDICES_BELIEVED_FOR = 2_000
export const INDICES_LOOK_INTERVAL = 1_000
/** Tries of a look at the ids of indices, where nodes do not answer. */
export const INDICES_LOOK_TRIES = 6
