/** The limits of the log library: what each counts, its unit, and its reason. */

const MiB = 1024 * 1024

/** Bytes of one partition in one fetch. A larger record still comes, alone. */
export const FETCH_PARTITION_BYTES = 256 * 1024

/** Bytes of all partitions in one fetch. */
export const FETCH_BYTES = 8 * MiB

/** Milliseconds a fetch waits for records. kafkajs's default of 5,000 makes every seek and stop take that long. */
export const FETCH_WAIT_MS = 200

/** Milliseconds of pause after a fetch of less than FETCH_REST_BYTES: single records are then taken in groups. */
export const FETCH_REST_MS = 10
export const FETCH_REST_BYTES = 64 * 1024

/** Milliseconds without a heartbeat after which the group gives our partitions to others. */
export const SESSION_TIMEOUT_MS = 10_000
export const HEARTBEAT_INTERVAL_MS = 3_000

/**
 * Milliseconds without an answer after which a broker counts as lost. Longer than SESSION_TIMEOUT_MS: until the group
 * drops a silent member, a broker may not answer the others. Short, so that everything continues within 30 s on the
 * other brokers.
 */
export const KAFKA_TIMEOUT_MS = 12_000

/** Milliseconds that members have to rejoin in a rebalance, of which they learn by heartbeat. */
export const REBALANCE_TIMEOUT_MS = 15_000

/** Milliseconds that a fetch waits for the records of a large batch. Then its partition is paused meanwhile. */
export const UNPACK_WAIT_MS = 50

/** Reads of a batch with a wrong checksum, after which it counts as changed on the broker's disk. */
export const CHANGED_BATCH_READS = 5

/**
 * Fetches that bring nothing of a log that goes on, after which Kafka counts as away, with this pause in milliseconds;
 * and milliseconds that each of them after the first one waits: a broker reads from a remote storage for 500 ms
 * (`remote.fetch.max.wait.ms`). 30 s in all: the watchdog ends a process that stands still for a minute.
 */
export const UNANSWERED_READS = 40
export const UNANSWERED_RETRY_MS = 250
export const UNANSWERED_WAIT_MS = 500

/**
 * A record that the log had counts as gone after this many reads, with this pause in milliseconds. A new leader may
 * report an earlier end until the other copies have told it how far they are, once in 500 ms.
 */
export const KNOWN_READS = 10
export const KNOWN_RETRY_MS = 500

/**
 * Milliseconds after which most brokers are asked again who leads, and after which an end that rests on their answer no
 * longer counts: a leader that was replaced may have told it. `as_of` waits 30 s.
 */
export const LEADERS_ASKED_MS = 4_000
export const LEADERS_TRUSTED_MS = 15_000

/** Lines that the log has of a topic for its undecodable batches in one window, and the milliseconds of the window. */
export const UNDECODABLE_LOGGED = 10
export const UNDECODABLE_LOGGED_MS = 60_000
