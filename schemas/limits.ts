/** The limits that both projector and API know: what each counts, its unit and its reason. */

/** Bytes of a record's value that a publisher may send, as the contract says. */
export const RECORD_VALUE_BYTES_MAX = 8 * 1024 * 1024

/**
 * Bytes of a record as Kafka counts them: value, key, headers and framing. `KAFKA_MAX_MESSAGE_BYTES` is set on both
 * topics: this, or less where a provider accepts less.
 */
export const TOPIC_MESSAGE_BYTES_MAX = 9 * 1024 * 1024
export const TOPIC_MESSAGE_BYTES_MIN = 64 * 1024
/** Bytes of a value that fit into a record of this size. A ninth is left for key, headers and framing. */
export const valueBytesOf = (messageBytes: number): number => Math.floor((messageBytes * 8) / 9)

/**
 * Bytes of a batch of records when it is decompressed, and of each of its records. A larger batch is parked in whole:
 * the two numbers are part of the rules. A few kilobytes can decompress to gigabytes.
 */
export const BATCH_BYTES_MAX = 512 * 1024 * 1024
export const BATCH_RECORD_BYTES_MAX = 32 * 1024 * 1024

/** Levels of nesting of an event's data; the data object is level 1. */
export const DATA_DEPTH_MAX = 32

/** Code points of a text. */
export const TEXT_LENGTH_MAX = 1_000

/** Characters of a sealed text: 1,000 code points have up to 4,000 bytes, which are 5,371 characters and the key id. */
export const SEALED_TEXT_LENGTH_MAX = 8_000

export const LINE_ITEMS_MAX = 10_000

export const TRACE_STEPS_MAX = 100_000

/** Payouts of one (rep, period), and payroll records of one (rep, period), voids included. */
export const CHAIN_LENGTH_MAX = 10_000

/** Digits of an amount before and after the point. */
export const MONEY_INTEGER_DIGITS_MAX = 40
export const MONEY_FRACTION_DIGITS_MAX = 40

/** Significant digits that keep every sum exact: both sides of the point, and the carry of 10,000 lines. */
export const MONEY_PRECISION = 100

/**
 * Records on a page: the maximum and the default. Both clients (`client/`), the explorer (`explorer/src/`) and exports
 * (`EXPORT_PAGE`) repeat it. A page of usual changes must stay below SMALL_ANSWER_BYTES: with 500 of them each page of
 * the feed would wait for the turn of its organization.
 */
export const PAGE_LIMIT_MAX = 200
export const PAGE_LIMIT_DEFAULT = 50

/** Ids of records that one request may name: with ids of the largest size, its target has TARGET_LENGTH_MAX. */
export const IDS_MAX = 100

/** Bytes of records on one page. A page ends early at this size, with `has_more`. */
export const PAGE_BYTES_MAX = 16 * 1024 * 1024

/** Bytes of payouts that totals of a deal may add up: those of some 100,000 payouts with 6 lines. */
export const DEAL_BYTES_MAX = 128 * 1024 * 1024

/**
 * Seconds that a request may wait for the next change. docs/reading.md repeats it. Proxies must wait longer:
 * `proxy_read_timeout` in deploy/chart/files/explorer.conf and docs/examples/nginx.conf. Both clients wait 30 s.
 */
export const WAIT_SECONDS_MAX = 60

/** Bytes of an answer per unit of the rate limit: four times a page of 200 payouts with 6 lines each (247 KB). */
export const RATE_UNIT_BYTES = 1024 * 1024

/** Characters of an API key. */
export const API_KEY_LENGTH_MIN = 20
export const API_KEY_LENGTH_MAX = 200
/** Networks that a key may work from: each request with the key is compared with all of them. */
export const KEY_NETWORKS_MAX = 20

/**
 * `until_seq` of a record that nothing has replaced: the largest integer that JavaScript holds exactly. JSON.parse
 * would change Elasticsearch's own maximum (2^63 - 1).
 */
export const UNTIL_FOREVER = Number.MAX_SAFE_INTEGER

/**
 * Times of events that say something, in milliseconds. Kafka is from 2011, and a time that is further ahead of the
 * reader's clock than clocks differ is wrong. Microseconds and nanoseconds are far ahead; seconds, 0 and -1 (no time)
 * are long before.
 */
export const EVENT_TIME_MIN = Date.UTC(2000, 0)
export const EVENT_TIME_AHEAD_MAX_MS = 5_000
