/** The limits of the projector: what each counts, its unit, and its reason. */

const MiB = 1024 * 1024

/** Milliseconds before a failed spare generation is started again: each start joins its group anew. */
export const SPARE_RETRY_MS = 30_000

/**
 * Milliseconds that a spare generation runs again before its failure is over: to join its group and to come to the
 * place where it failed takes less. Until then it is reported, else an alert would never see a failure that returns.
 */
export const SPARE_PROVEN_MS = 2 * 60_000

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

/** Requests for runs at once in one process, and how many of them read at once: some eight small requests each. */
export const RUNS_AT_ONCE_MAX = 100
export const RUN_READS_MAX = 4

/** Bytes of a parked record's body up to which its receipt is explained: it is parsed while records are projected. */
export const EXPLAINED_BYTES_MAX = 1 * MiB
export const EXPLANATIONS_AT_ONCE_MAX = 4

/** Milliseconds between two log lines of each partition's position. */
export const REPORT_INTERVAL_MS = 30_000

/** Milliseconds a stop waits for each other client to disconnect. */
export const DISCONNECT_TIMEOUT_MS = 500

/** Hours of parked records that the status page counts. */
export const PARKED_LATELY_HOURS = 24

/** Milliseconds that the status page waits for Kafka and Elasticsearch, before it says what this process knows. */
export const STATUS_PAGE_READ_MS = 3_000

/** Milliseconds that a scrape waits for Elasticsearch: the other metrics must come before Prometheus gives up. */
export const SCRAPE_READ_MS = 2_000

/** Records that wait, above which the status page calls a projector late: as the alert. */
export const LONG_LAG = 10_000
