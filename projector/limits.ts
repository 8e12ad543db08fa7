/**
 * Every limit of the projector: what it counts, its unit, and why it is what it is.
 */

import { getHeapStatistics } from 'node:v8'

const MiB = 1024 * 1024

/** Bytes asked of one partition in one fetch. A larger record still comes, alone. */
export const FETCH_PARTITION_BYTES = 256 * 1024
/** Bytes asked of all partitions in one fetch. */
export const FETCH_BYTES = 8 * MiB
/**
 * Milliseconds a fetch waits for something new. kafkajs's default of 5,000 makes every seek and stop take that long.
 */
export const FETCH_WAIT_MS = 200
/**
 * Milliseconds between a fetch that brought less than so many bytes and the next: records that come one by one are
 * taken in groups.
 */
export const FETCH_REST_MS = 10
export const FETCH_REST_BYTES = 64 * 1024

/** Milliseconds without a heartbeat after which the group gives our partitions to others. */
export const SESSION_TIMEOUT_MS = 10_000
export const HEARTBEAT_INTERVAL_MS = 3_000
/**
 * Milliseconds that the members of a group have to come back when its partitions are shared out again: they hear of it
 * by heartbeat.
 */
export const REBALANCE_TIMEOUT_MS = 15_000

/**
 * Bytes of records read and not yet written, per partition: above it the partition is paused, below half it resumes.
 */
export const PARTITION_BYTES_IN_FLIGHT = 4 * MiB
/** Bytes of one partition's records that are projected together; more only where one fetch brought more. */
export const BATCH_BYTES = 1 * MiB
/**
 * Bytes of a parked record that is kept whole, as the JSON of its document, where the value is base64. Elasticsearch
 * reckons with five times a document's bytes, and refuses for ever what is over a tenth of its heap: with 1 GB of heap
 * this is nearly the most.
 */
export const PARKED_BYTES_MAX = 16 * MiB
/** Bytes of a batch of records once it is decompressed: a few kilobytes can become all of the memory. */
export const DECOMPRESSED_BYTES_MAX = 512 * MiB

/**
 * Records that are projected together: what each of them replaces is loaded, and may be much larger than the record.
 */
export const BATCH_RECORDS = 500
/**
 * Bytes of records between being decoded and being written, over all partitions: parsed they take several times that.
 * More than the bulk requests under way need only waits in memory: measured, a sixth of the time went into collecting
 * it.
 */
export const DECIDED_BYTES = 6 * MiB
/** Batches of one partition that may be written at the same time. */
export const WRITES_IN_FLIGHT_PER_PARTITION = 4
/**
 * Bulk requests under way at the same time, over all partitions: with four, Elasticsearch hardly ever waits for the
 * next.
 */
export const BULKS_IN_FLIGHT = 4
/**
 * Bytes and documents of one bulk request. Elasticsearch refuses above 100 MB; measured best at 500 to 2,000 documents.
 */
export const BULK_BYTES = 8 * MiB
export const BULK_DOCUMENTS = 2_000
/** Requests of different partitions up to this size together go as one: bytes of bulk requests, documents of others. */
export const GATHERED_BYTES = 256 * 1024
export const GATHERED_IDS = 200
/**
 * Bytes a bulk request is not made smaller than after lost connections: no limit on the way is lower, and most have
 * other causes.
 */
export const BULK_BYTES_LEAST = 1 * MiB
/** Ids of one multi-get. */
export const MGET_IDS = 1_000
/** Bytes of its answer: documents may be large, and what does not fit is asked for by itself. */
export const MGET_BYTES = 16 * MiB

/**
 * Bytes of decided state kept per partition, so that Elasticsearch need not be asked for it again: with six partitions
 * at most a tenth of the heap. What is replaced soon after is found here; more would take memory that is promised to
 * others.
 */
export const CACHE_BYTES_PER_PARTITION = Math.min(8 * MiB, Math.floor(getHeapStatistics().heap_size_limit / 60))
/** Besides, bytes of reps, periods and the like: some thousands of them, asked for again only after as many payouts. */
export const CACHE_HEAD_BYTES_PER_PARTITION = CACHE_BYTES_PER_PARTITION / 2

/**
 * Milliseconds an Elasticsearch request may take before it is tried again: 30 s after it is well, everything goes on.
 */
export const ELASTICSEARCH_TIMEOUT_MS = 20_000
/** Milliseconds without an answer of Elasticsearch after which we do not call ourselves ready. */
export const ELASTICSEARCH_SLOW_MS = 5_000
/** Waiting before a retry: doubled each time from the first to the last, then a random half of it. Milliseconds. */
export const RETRY_FIRST_MS = 50
export const RETRY_LAST_MS = 5_000

/** Milliseconds between two refreshes while all partitions are far behind: nobody waits for single records then. */
export const REFRESH_BEHIND_MS = 5_000
/** Milliseconds that are rested after a refresh at most: otherwise half as many as it took. */
export const REFRESH_REST_MS = 500
/** Records still to be written up to the end of its partition from which on it counts as far behind. */
export const FAR_BEHIND_RECORDS = 1_000

/**
 * Milliseconds between two looks at the ends of the partitions; the contract lets Projection-Time stand still for
 * 1,000.
 */
export const ENDS_INTERVAL_MS = 400
/**
 * Milliseconds between two looks at who owns the partitions, and that one may be without an owner: a rebalance takes up
 * to 25 s.
 */
export const OWNERS_LOOK_MS = 5_000
export const OWNERS_GRACE_MS = 30_000
/** Milliseconds between two looks at Elasticsearch's clock. */
export const CLOCK_LOOK_MS = 5_000
/**
 * Milliseconds that two clocks may be apart. `as_of` waits for several times as long before it takes an instant for
 * over.
 */
export const CLOCKS_APART_MS = 5_000
/**
 * Milliseconds by which a record may be older than a look that did not see it: a broker shows it only once all copies
 * have it, 30 s with its own `replica.lag.time.max.ms`. `as_of` waits for as long. Beyond that its clock is behind.
 */
export const RECORDS_LATE_MS = 30_000
/**
 * Milliseconds that a partition is trusted while it is verified again: its last record is found in a few, if it is
 * there.
 */
export const VERIFYING_TRUSTED_MS = 2_000
/** Milliseconds between two identifications of the source. */
export const IDENTIFY_INTERVAL_MS = 10_000
/** Milliseconds between two commits of a partition to Kafka: they are for lag tools only. */
export const COMMIT_INTERVAL_MS = 1_000
/**
 * Milliseconds between two looks of the watchdog, and what lies between two at most counts as: a frozen process is not
 * stuck.
 */
export const WATCHDOG_INTERVAL_MS = 1_000
export const WATCHDOG_GAP_MS = 2_000
/**
 * Milliseconds without any progress, with work waiting and everything answering, or out of the group, after which the
 * projector ends itself. A rebalance that waits for a dead member, then for a dead leader, is over before.
 */
export const STUCK_MS = 60_000
/**
 * Milliseconds after which a look at the ends of the partitions that is not answered means that Kafka does not answer.
 */
export const ENDS_LATE_MS = 5_000
/** Milliseconds between two looks at which generations are to be kept up. */
export const FOLLOW_MS = 2_000
/**
 * Milliseconds after which a spare generation whose stream failed is tried again: it joins its group anew each time.
 */
export const SPARE_RETRY_MS = 30_000
/**
 * Milliseconds between two looks at how far the generation is that another one follows: doubled each time, from the
 * first to the last.
 */
export const FOLLOWED_LOOK_FIRST_MS = 10
export const FOLLOWED_LOOK_LAST_MS = 200
/** Milliseconds after which it is said that one waits for the other. */
export const FOLLOWED_LATE_MS = 5_000
/** Milliseconds between two looks at how far a rebuild is. */
export const REBUILD_LOOK_MS = 250
/** Milliseconds: a rebuild has caught up when all that was in the topic so long ago, or less, is published. */
export const CAUGHT_UP_MS = 5_000
/** Receipts that wait at the same time in one process: one multi-get has room for as many. */
export const RECEIPTS_WAITING_MAX = 1_000
/** Seconds that a receipt is waited for at most: proxies between cut a request that is silent for longer. */
export const RECEIPT_WAIT_SECONDS_MAX = 60
/**
 * Milliseconds between the end of a look at what receipts wait for and the next: ten small multi-gets a second cost
 * next to nothing.
 */
export const RECEIPTS_LOOK_INTERVAL_MS = 100
/**
 * Milliseconds after which a look that is not answered is given up: who asked is told so, and the next look is another
 * request.
 */
export const RECEIPTS_LOOK_TIMEOUT_MS = 3_000
/** Milliseconds between two lines that say where each partition stands. */
export const REPORT_INTERVAL_MS = 30_000
/** Milliseconds a stop waits for what was read to be published; what is not is read again by the next owner. */
export const DRAIN_TIMEOUT_MS = 5_000
/**
 * Milliseconds a stop waits for all of its streams, to publish and to leave their groups. While others of its group
 * have not heard that a member has come or gone a member cannot leave it: they do with their next heartbeat.
 */
export const STREAMS_STOP_TIMEOUT_MS = 6_500
/** Milliseconds a projector that fails waits for Kafka to hear that it leaves. */
export const LEAVE_TIMEOUT_MS = 1_500
/** Milliseconds any stop waits for each of the other clients. */
export const DISCONNECT_TIMEOUT_MS = 500
/** Milliseconds a stop may take in all before it is cut. Operators are promised 10 s. */
export const STOP_TIMEOUT_MS = 9_000
