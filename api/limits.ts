/** The limits of the API: what each counts, its unit, and its reason. */
import { READS_OF_ORGANIZATION } from '../core/reading/index.ts'
import { READ_TIME_MAX, READS_IN_FLIGHT_MAX } from '../core/store/index.ts'
import { WAIT_SECONDS_MAX } from '../schemas/limits.ts'

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
 * Requests in flight, of one key and of one organization: from authentication until the answer is delivered or the
 * connection is closed. One client uses far fewer, and fewer keep Elasticsearch busy. A further request is refused at
 * once.
 */
export const IN_FLIGHT_OF_KEY = { permits: 100, queue: 0, waitMax: 0 }
export const IN_FLIGHT_OF_ORGANIZATION = { permits: 200, queue: 0, waitMax: 0 }

/**
 * Requests of one organization that read totals at once: they can wait for a sum for long, and half of the reads serve
 * the other requests. Further ones queue for a short time, without a read permit.
 */
export const TOTALS_READS_OF_ORGANIZATION = { ...READS_OF_ORGANIZATION, permits: READS_OF_ORGANIZATION.permits / 2 }

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

/**
 * Requests that wait for a change at once. Each holds its connection for up to a minute, so waits of all organizations
 * leave half of the connections to others, and those of one organization leave most waits to others. A further request
 * does not wait: its page is read at once, so that it holds a connection for a moment only.
 */
export const WAITS_OF_ORGANIZATION = { permits: 50, queue: 0, waitMax: 0 }
export const WAITS = { permits: CONNECTIONS_MAX / 2, queue: 0, waitMax: 0 }
export const ENCRYPTED_WAITS = { permits: ENCRYPTED_CONNECTIONS_MAX / 2, queue: 0, waitMax: 0 }

/**
 * Waits that search for the first time, at once: in all (a fifth of READS_IN_FLIGHT_MAX) and of one organization. After
 * a start, all clients that follow a feed begin to wait at the same time. So each wait that a process may have has a
 * place in the queue, for as long as it may wait.
 */
export const WAIT_SEARCHES = {
  permits: READS_IN_FLIGHT_MAX / 5,
  queue: WAITS.permits,
  waitMax: WAIT_SECONDS_MAX * 1_000,
}
export const WAIT_SEARCHES_OF_ORGANIZATION = { ...WAIT_SEARCHES, permits: WAIT_SEARCHES.permits / 5 }

/**
 * Look-ups of keys that were never valid in this process: at once (a fifth of READS_IN_FLIGHT_MAX), in the queue, and
 * milliseconds of waiting. Each connection has a place in the queue, because after a start it has the keys of all
 * clients. A look-up takes milliseconds. Those at once must be fewer than the tries of an address: each holds a try.
 */
export const KEY_LOOKUPS = { permits: READS_IN_FLIGHT_MAX / 5, queue: 2_000, waitMax: READ_TIME_MAX }

/** The same for addresses that tried too many unknown keys: few, so that only those who try keys wait. */
export const KEY_LOOKUPS_EXHAUSTED = { permits: 8, queue: 64, waitMax: 1_000 }

/**
 * Characters of a request target: those of IDS_MAX of the longest ids, their commas as `%2C`, and `as_of`. Any other
 * valid one has under 400.
 */
export const TARGET_LENGTH_MAX = 7_680

/** Bytes of the raw headers of a request, and their number. */
export const HEADERS_BYTES_MAX = 8 * 1024
export const HEADERS_COUNT_MAX = 64

/** Bytes of request line and headers at which Node's parser fails: enough to tell a long target from long headers. */
export const PARSER_BYTES_MAX = 16 * 1024

/** Seconds for which a client may use a record or totals as of a change without asking: new rules can change it. */
export const FIXED_AGE_SECONDS = 3_600

/** Bytes of a body, which is read and dropped. A longer one is refused. No operation has a body. */
export const BODY_BYTES_MAX = 64 * 1024

/** Milliseconds for the headers of a request (408 within 10 s), for all of it, and between two checks of the clock. */
export const HEADERS_TIME_MAX = 9_500
export const REQUEST_TIME_MAX = 14_500
export const TIMEOUT_CHECK_INTERVAL = 250

/** Milliseconds that a connection may idle between two requests: longer than the usual client keeps one. */
export const KEEP_ALIVE_TIME = 65_000

/**
 * Milliseconds that an answer may still take when its client has ended its side of the connection. Most of such clients
 * have gone; some only say that they send no more.
 */
export const ENDED_SIDE_TIME = 1_000

/** Milliseconds without a byte in either direction. Then the API closes the connection: its client does not read. */
export const SOCKET_SILENCE_MAX = 30_000

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

/** Milliseconds for Redis to count a request before this process does, and between two tries or two connections. */
export const REDIS_ANSWER_TIME_MAX = 500
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

/**
 * A stop has 10 s in all. In order: milliseconds until the last request is ended, drain included; milliseconds for
 * requests to the admin port, which closes last; milliseconds until lines of the audit log that are not written are
 * lost; milliseconds until the process ends by force.
 */
export const STOP_TIME_MAX = 8_000
export const ADMIN_STOP_TIME = 250
export const AUDIT_END_TIME = 8_750
export const STOP_TIMEOUT = 9_000

/** Milliseconds between two checks of the certificate files. */
export const CERTIFICATE_CHECK_INTERVAL = 2_000

/** Milliseconds between two readiness checks after a start that was not ready. */
export const READY_INTERVAL = 1_000

/**
 * After a swap, the new live generation may be behind the previous one for milliseconds. Milliseconds between two reads
 * of the positions by a readiness check, and for how long it reads again: a fraction of READY_TIME_MAX.
 */
export const READY_SWAP_INTERVAL = 25
export const READY_SWAP_TIME = 500

/**
 * Bytes of log lines in one write, and milliseconds until a write at the latest. One write for each line would take a
 * tenth of the time of a page.
 */
export const LOG_BUFFER_BYTES = 8 * 1024
export const LOG_FLUSH_INTERVAL = 100

/**
 * The audit log: milliseconds that an answer waits for its line; bytes of lines that wait, and of one write (a batch of
 * Kafka may have 1 MiB); milliseconds between two log lines about lost ones.
 */
export const AUDIT_WAIT_MAX = 2_000
export const AUDIT_BYTES_MAX = 4 * 1024 * 1024
export const AUDIT_BATCH_BYTES = 512 * 1024
/** Bytes of one write, at least: a topic takes 32 KiB (docs/audit.md), with keys and lengths of the records. */
export const AUDIT_BATCH_BYTES_MIN = 16 * 1024
export const AUDIT_REPORT_INTERVAL = 10_000

/** Milliseconds that a request to Kafka may take, and its retries. An answer waits for AUDIT_WAIT_MAX at most. */
export const AUDIT_KAFKA_TIMEOUT = 3_000
export const AUDIT_KAFKA_RETRIES = 3

/** Milliseconds that one write to Kafka may take in all. Then its lines are lost: a strict audit waits for no other. */
export const AUDIT_KAFKA_WRITE_MAX = 30_000

/**
 * Bytes by which the heap and the buffers outside it may grow between two collections, and the percentages of what the
 * last one left: never more than the one, at least the other.
 */
export const HEAP_GROWTH_BYTES = 96 * 1024 * 1024
export const HEAP_GROWTH_PERCENT_MAX = 300
export const HEAP_GROWTH_PERCENT_MIN = 50

/** Seconds that a browser may remember the answer to a preflight request: the longest that browsers keep. */
export const PREFLIGHT_SECONDS = 7_200
