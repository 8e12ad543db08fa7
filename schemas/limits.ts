/**
 * Every limit both sides know, in one place: what it counts, in which unit, and why it is what it is.
 */

/** Bytes of a record's value that a publisher may send. The contract's figure. */
export const RECORD_VALUE_BYTES_MAX = 8 * 1024 * 1024

/** Bytes of a record as Kafka counts it: value, key, headers and frame. Set on both topics. */
export const TOPIC_MESSAGE_BYTES_MAX = 9 * 1024 * 1024

/** Levels of nesting of an event's data; the data object itself is level 1. */
export const DATA_DEPTH_MAX = 32

/** Code points of a text. */
export const TEXT_LENGTH_MAX = 1_000

/** Line items of a payout. */
export const LINE_ITEMS_MAX = 10_000

/** Steps of a calculation trace. */
export const TRACE_STEPS_MAX = 100_000

/** Payouts of one (rep, period), and payroll records of one (rep, period), voids included. */
export const CHAIN_LENGTH_MAX = 10_000

/** Digits of an amount before and after the point. */
export const MONEY_INTEGER_DIGITS_MAX = 40
export const MONEY_FRACTION_DIGITS_MAX = 40

/** Significant digits that keep every sum exact: both sides of the point, and what 10,000 lines can carry over. */
export const MONEY_PRECISION = 100

/** Records on a page: asked for, and when nothing was asked. */
export const PAGE_LIMIT_MAX = 200
export const PAGE_LIMIT_DEFAULT = 50

/** Bytes of records on one page: beyond this it ends early, with `has_more`. */
export const PAGE_BYTES_MAX = 16 * 1024 * 1024

/** Bytes of an answer that one unit of the rate limit pays for: an ordinary page of 200 records has a quarter of it. */
export const RATE_UNIT_BYTES = 1024 * 1024

/** Characters of an API key. */
export const API_KEY_LENGTH_MIN = 20
export const API_KEY_LENGTH_MAX = 200

/**
 * `until_seq` of what nothing has replaced yet: the largest integer that JavaScript holds exactly.
 * Elasticsearch's own largest (2^63 - 1) does not survive a JSON.parse.
 */
export const UNTIL_FOREVER = Number.MAX_SAFE_INTEGER
