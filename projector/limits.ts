/** Every limit of the projector: what it counts, its unit, and its reason. */

import { getHeapStatistics } from 'node:v8'

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

/**
 * Partitions of a topic that one process projects with caches and reading ahead of full size. More of them share the
 * same memory: a process may have to take over all partitions of the topic.
 */
export const PARTITIONS_OF_FULL_SIZE = 6
/** Bytes read and not yet written, per partition: above it the partition pauses, below half it resumes. */
export const PARTITION_BYTES_IN_FLIGHT = 4 * MiB
/** Bytes of one partition's records that are projected together. A larger record is projected alone. */
export const BATCH_BYTES = 1 * MiB
/**
 * Bytes of a parked record that is kept whole, as JSON with base64. Elasticsearch counts each byte five times, and
 * always refuses a document that counts for more than a tenth of its heap: with 1 GB of heap this is nearly the most.
 */
export const PARKED_BYTES_MAX = 16 * MiB
/** Milliseconds that a fetch waits for the records of a large batch. Then its partition is paused meanwhile. */
export const UNPACK_WAIT_MS = 50
/** Reads of a batch with a wrong checksum, after which it counts as changed on the broker's disk. */
export const CHANGED_BATCH_READS = 5

/** Records that are projected together. The documents they replace are loaded, and may be much larger. */
export const BATCH_RECORDS = 500
/**
 * Bytes of records from decoding to writing, over all partitions. Parsed records take several times that. With a larger
 * limit, records wait in memory for bulk requests: measured, garbage collection then took a sixth of the time.
 */
export const DECIDED_BYTES = 6 * MiB
/** Batches of one partition that may be written at the same time. */
export const WRITES_IN_FLIGHT_PER_PARTITION = 4
/** Concurrent bulk requests over all partitions. With four, Elasticsearch hardly ever waits for the next. */
export const BULKS_IN_FLIGHT = 4
/** Bytes and documents of a bulk request. Elasticsearch refuses above 100 MB; 500 to 2,000 documents measured best. */
export const BULK_BYTES = 8 * MiB
export const BULK_DOCUMENTS = 2_000
/** Requests of several partitions are combined up to this: bytes of bulk requests, documents of others. */
export const BATCHED_BYTES = 256 * 1024
export const BATCHED_IDS = 200
/**
 * Lost connections halve a bulk request, down to these bytes. The limits of proxies are not lower, and most connections
 * are lost for other reasons.
 */
export const BULK_BYTES_MIN = 1 * MiB
/** Ids of one multi-get. */
export const MGET_IDS = 1_000
/** Bytes of the response to a multi-get: documents may be large. The rest is requested separately. */
export const MGET_BYTES = 16 * MiB

/**
 * Bytes of documents cached per partition, so that Elasticsearch need not be asked again: in a process less than a
 * sixth of the heap. Documents replaced soon are found here. A larger cache would take memory that other parts need.
 */
const CACHE_BYTES_PER_PARTITION = Math.min(12 * MiB, Math.floor(getHeapStatistics().heap_size_limit / 40))
/** The shares of payouts, of chains, and of heads with all others. There are as many chains as payouts. */
export const CACHE_PAYOUT_BYTES_PER_PARTITION = Math.floor((CACHE_BYTES_PER_PARTITION * 5) / 12)
export const CACHE_CHAIN_BYTES_PER_PARTITION = Math.floor(CACHE_BYTES_PER_PARTITION / 4)
/** Reps, periods and the like: some thousands, each read again only after thousands of payouts. */
export const CACHE_HEAD_BYTES_PER_PARTITION = Math.floor(CACHE_BYTES_PER_PARTITION / 3)

/** Timeout of a request to Elasticsearch, in milliseconds: everything continues within 30 s of its recovery. */
export const ELASTICSEARCH_TIMEOUT_MS = 20_000
/** Milliseconds without an answer from Elasticsearch after which we are not ready. */
export const ELASTICSEARCH_SLOW_MS = 5_000
/** Milliseconds before a retry: doubled each time, from first to last. Half of it is random. */
export const RETRY_FIRST_MS = 50
export const RETRY_LAST_MS = 5_000

/** Milliseconds between two refreshes while all partitions are far behind: nobody waits for single records then. */
export const REFRESH_BEHIND_MS = 5_000
/** Milliseconds between two refreshes of a rebuild or a replay; a projector has the setting FRESHNESS_MS. */
export const REFRESH_INTERVAL_MS = 25
/** Milliseconds after which a write no longer waits for the refresh under way. */
export const WRITES_HELD_MS = 250
/** Records not yet written above which a partition is far behind. */
export const FAR_BEHIND_RECORDS = 1_000

/** Milliseconds between two reads of the ends. Projection-Time may stand still for at most 1,000 milliseconds. */
export const ENDS_INTERVAL_MS = 400
/** Milliseconds between two checks of owners, and how long a partition may lack one: a rebalance takes up to 25 s. */
export const OWNERS_INTERVAL_MS = 5_000
export const OWNERS_GRACE_MS = 30_000
/** Milliseconds between two reads of Elasticsearch's clock. */
export const CLOCK_INTERVAL_MS = 5_000
/** Milliseconds that two clocks may differ. `as_of` waits several times as long before an instant counts as over. */
export const CLOCKS_APART_MS = 5_000
/** Records with a wrong time that a process names in its log, for each topic. A publisher can send any number. */
export const WRONG_TIMES_LOGGED = 10
/**
 * A record may appear this many milliseconds after its timestamp: a broker shows it once all replicas have it, 30 s
 * with the default `replica.lag.time.max.ms`. If it appears later, the broker's clock is behind. `as_of` waits as long.
 */
export const RECORDS_LATE_MS = 30_000
/** Milliseconds that a source stays trusted while it is verified again. An existing record is found in a few. */
export const VERIFYING_TRUSTED_MS = 2_000
/** The pause after a slow verification, in times that it took: a slow line has room for records. The longest pause. */
export const VERIFYING_PAUSE_FACTOR = 10
export const VERIFYING_PAUSE_MAX_MS = 60_000
/** Milliseconds between two copies of the published positions, and between two checks whether a copy is due. */
export const KEEP_POSITIONS_MS = 60_000
export const KEEP_POSITIONS_LOOK_MS = 2_000
/** Milliseconds between two identifications of the source. */
export const IDENTIFY_INTERVAL_MS = 10_000
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
/** Milliseconds before a failed spare generation is started again: each start joins its group anew. */
export const SPARE_RETRY_MS = 30_000
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
/** Receipts that wait at once in one process: one multi-get holds as many. */
export const RECEIPTS_WAITING_MAX = 1_000
/** Longest wait for a receipt, in seconds: proxies cut a request that is silent for longer. */
export const RECEIPT_WAIT_SECONDS_MAX = 60
/** Milliseconds of pause between two reads for receipts: ten small multi-gets a second cost next to nothing. */
export const RECEIPTS_POLL_MS = 100
/** Timeout of a read for receipts, in milliseconds: the clients get an error, and the next read is another request. */
export const RECEIPTS_POLL_TIMEOUT_MS = 3_000
/** Offsets of a run in one request: a longer run is several requests. */
export const RUN_OFFSETS_MAX = 10_000
/** Parked records that the receipt of a run lists. */
export const RUN_PARKED_LISTED_MAX = 100
/**
 * Organizations whose changes are counted for a run. The search finds the changes of all partitions, at most one for
 * each offset. So a run of up to 10,000 / partitions offsets cannot have more organizations.
 */
export const RUN_ORGANIZATIONS_MAX = 10_000
/** Requests for runs at once in one process, and how many of them read at once: five small requests each. */
export const RUNS_AT_ONCE_MAX = 100
export const RUN_READS_MAX = 4
/** Bytes of a parked record's body up to which its receipt is explained: it is parsed while records are projected. */
export const EXPLAINED_BYTES_MAX = 1 * MiB
export const EXPLANATIONS_AT_ONCE_MAX = 4
/** Milliseconds between two log lines of each partition's position. */
export const REPORT_INTERVAL_MS = 30_000
/** Milliseconds a stop waits for read records to be published. The next owner reads the rest again. */
export const DRAIN_TIMEOUT_MS = 5_000
/**
 * Milliseconds a stop waits for all streams to publish and leave their groups. A member cannot leave before the other
 * members know of the last change of the group, which they learn by heartbeat.
 */
export const STREAMS_STOP_TIMEOUT_MS = 6_500
/** Milliseconds a failing projector waits to leave its groups. */
export const LEAVE_TIMEOUT_MS = 1_500
/** Milliseconds a stop waits for each other client to disconnect. */
export const DISCONNECT_TIMEOUT_MS = 500
/** Milliseconds a stop may take before the process exits. Operators are promised 10 s. */
export const STOP_TIMEOUT_MS = 9_000
/** Batches that nobody can read and that have a line of the log in a window, for each topic, and its milliseconds. */
export const UNDECODABLE_LOGGED = 10
export const UNDECODABLE_LOGGED_MS = 60_000
