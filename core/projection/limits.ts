/** The limits of the projection library: what each counts, its unit, and its reason. */

const MiB = 1024 * 1024

/**
 * Partitions of a topic that one process projects with caches and reading ahead of full size. More of them share the
 * same memory: a process may have to take over all partitions of the topic.
 */
export const PARTITIONS_OF_FULL_SIZE = 6

/** Bytes read and not yet written, per partition: above it the partition pauses, below half it resumes. */
export const PARTITION_BYTES_IN_FLIGHT = 4 * MiB

/**
 * Bytes of records from decoding to writing, over all partitions. Parsed records take several times that. With a larger
 * limit, records wait in memory for bulk requests: measured, garbage collection then took a sixth of the time.
 */
export const DECIDED_BYTES = 6 * MiB

/**
 * Batches of one partition that may be written at the same time. Large ones are bounded by their bytes. Small ones wait
 * for the refresh under way: with four, further records were decided only after the next bulk request.
 */
export const WRITES_IN_FLIGHT_PER_PARTITION = 32

/** Concurrent bulk requests over all partitions. With four, Elasticsearch hardly ever waits for the next. */
export const BULKS_IN_FLIGHT = 4

/**
 * Milliseconds after which the answer of a read needs a check of the indices: an empty shard may have come in the place
 * of a lost one meanwhile. Reads of a batch take a few.
 */
export const DOUBTED_READ_MS = 1_000

/**
 * Milliseconds after which a projector looks whether its indices are the same, and its partition its own, before it
 * writes: it may have stood still meanwhile. Not longer than the group waits after its last heartbeat, before it gives
 * the partition to another one: SESSION_TIMEOUT_MS less HEARTBEAT_INTERVAL_MS.
 */
export const STOOD_STILL_MS = 7_000

/**
 * Milliseconds that a batch waits if another owner has published a part of it. Afterwards the group has taken the
 * partition from a process that stood still, at the latest. A process that still has it goes on: SESSION_TIMEOUT_MS.
 */
export const OVERLAP_MS = 10_000

/** Milliseconds between two refreshes of a rebuild or a replay; a projector has the setting FRESHNESS_MS. */
export const REFRESH_INTERVAL_MS = 25

/** The longest delay of a refresh in milliseconds, however far behind the partitions are. */
export const REFRESH_DELAY_MAX_MS = 5_000

/**
 * Milliseconds between two reads of the ends. While nothing may be missing, Projection-Time stands still for at most
 * 1,000 milliseconds.
 */
export const ENDS_INTERVAL_MS = 400

/** Milliseconds between two checks of owners, and how long a partition may lack one: a rebalance takes up to 25 s. */
export const OWNERS_INTERVAL_MS = 5_000
export const OWNERS_GRACE_MS = 30_000

/** Records with a wrong time that a process names in its log, for each topic. A publisher can send any number. */
export const WRONG_TIMES_LOGGED = 10

/**
 * A record that is appended after a look at the ends may be older than the look by this many milliseconds. If it is
 * older, the broker's clock is behind. `as_of` waits as long.
 */
export const RECORDS_LATE_MS = 30_000

/** Milliseconds that a source stays trusted while it is verified again. An existing record is found in a few. */
export const VERIFYING_TRUSTED_MS = 2_000

/**
 * After a slow verification, a pause of as many times its duration, so that a slow line has room for records; and the
 * longest pause.
 */
export const VERIFYING_PAUSE_FACTOR = 10
export const VERIFYING_PAUSE_MAX_MS = 60_000

/**
 * Balances: changes of an organization from one to the next; milliseconds between two looks, and between the two
 * computations of a balance.
 */
export const BALANCES = { changes: 1_000, interval: 1_000 }

/**
 * In order: rows of a balance that make the step to the next one longer by the usual step, so that balances take at
 * most some hundred bytes a change; rows after which none is made any more; amounts in one answer.
 */
export const BALANCE_ROWS_A_STEP = 1_000
export const BALANCE_ROWS_MAX = 10_000
export const BALANCE_AMOUNTS = 5_000

/**
 * How balances are made. In order: balances in one look; records that a partition may be behind its end; organizations
 * that one sweep finds, the largest ones; organizations whose changes are counted.
 */
export const BALANCES_AT_ONCE = 100
export const BALANCES_LAG_MAX = 10_000
export const BALANCES_SWEPT = 10_000
export const BALANCE_ORGANIZATIONS = 100_000

/** Milliseconds between two commits of a partition to Kafka: they are for lag tools only. */
export const COMMIT_INTERVAL_MS = 1_000

/** Milliseconds between two checks of the watchdog, and the most that count: a frozen process is not stuck. */
export const WATCHDOG_INTERVAL_MS = 1_000
export const WATCHDOG_GAP_MS = 2_000

/**
 * Milliseconds without progress, or out of the group, after which the projector ends itself. A rebalance that waits for
 * a dead member, then for a dead leader, takes less.
 */
export const STUCK_MS = 60_000

/** Milliseconds without a read of the ends after which Kafka counts as not answering. */
export const ENDS_LATE_MS = 5_000

/** Milliseconds between two reads of the list of generations to keep up. */
export const GENERATIONS_POLL_MS = 2_000

/** Milliseconds between two reads of a followed generation's position: doubled each time, from first to last. */
export const FOLLOWED_POLL_FIRST_MS = 10
export const FOLLOWED_POLL_LAST_MS = 200

/** Milliseconds after which a wait for the followed generation is reported. */
export const FOLLOWED_LATE_MS = 5_000

/** Milliseconds between two reads of a rebuild's progress. */
export const REBUILD_POLL_MS = 250

/** Longest wait of a rebuild for its rate, in milliseconds, until it tells the watchdog again that it waits. */
export const PACE_WAIT_MS = 1_000

/** A rebuild has caught up when it has published up to the ends that it read at most this many milliseconds ago. */
export const CAUGHT_UP_MS = 5_000

/** Milliseconds a stop waits for read records to be published. The next owner reads the rest again. */
export const DRAIN_TIMEOUT_MS = 5_000

/**
 * Milliseconds a stop waits for all streams to publish and leave their groups. A member cannot leave before the other
 * members know of the last change of the group, which they learn by heartbeat.
 */
export const STREAMS_STOP_TIMEOUT_MS = 6_500

/** Milliseconds a failing projector waits to leave its groups. */
export const LEAVE_TIMEOUT_MS = 1_500

/** Milliseconds a stop may take before the process exits. Operators are promised 10 s. */
export const STOP_TIMEOUT_MS = 9_000
