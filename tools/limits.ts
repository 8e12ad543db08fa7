/** Every limit of the commands: what it counts, its unit, and the reason for its value. */

const MiB = 1024 * 1024

/** Milliseconds that one check of `doctor` may take. A frozen server answers none. */
export const CHECK_TIMEOUT_MS = 10_000
/** Records that `list` shows by default. */
export const LIST_DEFAULT = 50
/** Keys of one organization that one search returns. */
export const KEYS_PAGE = 1_000
/** Records that one run lists or sends. It reports the rest; the next run takes them (`list`: with `--after`). */
export const RECORDS_MAX = 10_000
/** Hits of one search, without the bytes of records. */
export const SEARCH_HITS = 1_000
/** Hits that a merge of all partitions holds at once, of some 350 bytes each. */
export const MERGED_HITS = 20_000
/** Records, and bytes of them as stored (base64), published before their outcome is awaited; or one larger record. */
export const CHUNK_RECORDS = 100
export const CHUNK_BYTES = 6 * MiB
/** Default seconds to wait until the projector has published what is in Kafka. */
export const WAIT_DEFAULT_S = 60
/**
 * Milliseconds that an erasure waits until documents include what was published before it began. At rest they do after
 * a second; the clocks of an operator and of a projector may differ by the rest.
 */
export const INCLUDED_WAIT_MS = 30_000
/** Milliseconds between two reads of the projector's positions. */
export const POLL_MS = 100
/** Characters of a text value, and bytes of a binary value, that `show` prints. `--raw` and `--json` print all. */
export const SHOWN_CHARACTERS = 4_000
export const SHOWN_BYTES = 512
/** Characters of a publisher's text in a table column. */
export const COLUMN_CHARACTERS = 40
/** Bytes of stored bodies in one answer of a scan, or one larger document. Parsed bodies take several times as much. */
export const SCAN_BYTES = 8 * MiB
/** Bytes at which an answer of several documents is aborted, so that wrong stored sizes cannot fill memory. */
export const SCAN_ANSWER_BYTES = 32 * MiB
/** Documents whose sizes a scan requests at once: in the first request, and at most. */
export const SCAN_SIZES_FIRST = 8
export const SCAN_SIZES = 1_000
/** Bytes of bodies that Elasticsearch loads to return the sizes of one page: some hundred milliseconds. */
export const SCAN_LOADED_BYTES = 64 * MiB
/** Documents whose sizes are requested by id at once. */
export const SIZES_AT_ONCE = 32
/** Ids of one kind and organization held in memory to find the documents that differ. */
export const DIFFERING_HELD = 50_000
/** Buckets, each with a digest, that the documents of one kind and organization are divided into if there are more. */
export const DIFFERING_BUCKETS = 4_096
/** Differences of two generations that are shown, and positions that a swap would unpark. */
export const DIFFERENCES_SHOWN = 10
/** Documents of each generation compared field by field, or explained, at a time; fewer if they are large. */
export const COMPARED_DOCUMENTS = 100
/** Rows of a table: column widths are computed from all its rows. */
export const TABLE_ROWS = 1_000
/**
 * Of the page of `diff --html`: sections of a rep and period, rows of lines and records, rows of period totals, and
 * characters of a text. A browser shows a page of this size at once.
 */
export const PAGE_SECTIONS = 500
export const PAGE_ROWS = 5_000
export const PAGE_PERIODS = 5_000
export const PAGE_CHARACTERS = 300
/** Milliseconds that a swap waits until the generation has reached the live one. */
export const SWAP_WAIT_MS = 60_000
/**
 * Milliseconds that a generation may lag behind the live one that it follows at a swap: a follower never has the same
 * position at the same moment. Readers wait for it, never longer than 1,500 ms (`core/store/limits.ts`).
 */
export const SWAP_NEAR_MS = 400
export const NEAR_POLL_MS = 10
/** Milliseconds that a drop waits until nobody writes to the generation. */
export const DROP_WAIT_MS = 60_000
/** Milliseconds without a change of any position until no projector runs: it writes each within a second. */
export const QUIET_MS = 5_000
export const QUIET_POLL_MS = 500
/** Milliseconds that `grow --swap` waits until publishers and projectors of the old topic have stopped. */
export const GROW_WAIT_MS = 600_000
/** Milliseconds between two lines about what it waits for. */
export const GROW_NEWS_MS = 10_000
/** Documents of the control index searched for generations: a position for each partition of each generation. */
export const REMAINS_MAX = 10_000
/**
 * Records that a generation may have received since `verify` found it equal: this number, or one part in
 * SWAP_UNCOMPARED_PART of the compared records, whichever is more. The same programs projected them from equal
 * documents. A higher limit would trust an old comparison of documents that somebody may have changed since.
 */
export const SWAP_UNCOMPARED_RECORDS = 100_000
export const SWAP_UNCOMPARED_PART = 10
/** Milliseconds between two progress lines of a long command without a terminal. */
export const PROGRESS_INTERVAL_MS = 10_000
/** Forms within forms, and bytes of all of them, in which a record that cannot be decoded is searched for a person. */
export const READING_DEPTH = 4
export const READING_BYTES = 64 * MiB
/** Positions of one kind that a redaction prints; its list has all of them. */
export const REDACTED_SHOWN = 20
/** Characters of a name or e-mail address, at least, that is searched for in other places. One letter is everywhere. */
export const SEARCHED_CHARACTERS = 2
/** A shorter text is found only as a word of its own: longer words, ids and sealed texts have its letters by chance. */
export const WORD_CHARACTERS = 4
/** Records of one page of an export. */
export const EXPORT_PAGE = 200
/** Rows of a Parquet table in memory: some 40 MB of lines with the longest descriptions. */
export const TABLE_GROUP_ROWS = 10_000
/** Attempts of a read that Elasticsearch does not answer, and milliseconds between two attempts. */
export const READ_ATTEMPTS = 30
export const READ_RETRY_MS = 1_000
/**
 * Milliseconds between two updates of the lock file of a run, and how long another machine watches for an update. A
 * network file system caches the time of a file for up to 60 s: the watch must be longer.
 */
export const LOCK_HEARTBEAT_MS = 5_000
export const LOCK_WATCHED_MS = 90_000
/** Bytes of the entries of one segment of an archive before compression, and of one larger entry. */
export const SEGMENT_BYTES = 16 * MiB
/** Bytes of the segments of one topic that grow at once. With more than 32 partitions segments are smaller. */
export const SEGMENTS_BYTES = 512 * MiB
export const ENTRY_BYTES_MAX = 600 * MiB
/**
 * Segments that are read at once, after one of at most these bytes: eight larger ones would fill memory. A restore
 * reads one ahead in each partition, after records of at most these bytes.
 */
export const SEGMENTS_AHEAD = 8
export const SMALL_SEGMENT_BYTES = MiB
/** With `--follow`: milliseconds between two looks at the ends, and until records are in a segment. */
export const ARCHIVE_POLL_MS = 1_000
export const ARCHIVE_FLUSH_MS = 60_000
/** Milliseconds between two messages about new records. */
export const ARCHIVE_NEWS_MS = 10_000
/** Looks until transactions that were open at the first one have ended, and milliseconds between two of them. */
export const OPEN_LOOKS = 10
export const OPEN_LOOK_MS = 1_000
/** Milliseconds after which `archive --follow` names a transaction that is still open, again and again. */
export const ARCHIVE_OPEN_MS = 60_000
/** Milliseconds without a byte until a request to S3 is given up. */
export const S3_SILENT_MS = 30_000
/** Milliseconds between two attempts of a request, at first. */
export const S3_RETRY_FIRST_MS = 200
/** Milliseconds between two attempts of a request, at most. */
export const S3_RETRY_MAX_MS = 10_000
/** Milliseconds between two messages about a request without an answer. */
export const S3_RETRY_SAID_MS = 10_000
/** Milliseconds from the first failure of a request until the command ends. */
export const S3_RETRY_TOTAL_MS = 120_000
/** Bytes of an object, or of one page of a list: one larger entry, compressed badly. */
export const S3_ANSWER_BYTES = ENTRY_BYTES_MAX + SEGMENT_BYTES
/** Milliseconds between two writes of the lock of an archive in S3. A bucket with versions keeps each of them. */
export const S3_LOCK_HEARTBEAT_MS = 20_000
/** Records, and bytes of them, that a restore appends at once; or one larger record. */
export const RESTORE_RECORDS = 2_000
export const RESTORE_BYTES = 768 * 1024
/**
 * Bytes of one fetch of one partition, at most and at least, and of the fetches of all partitions that are read at
 * once, also of the batches that `grow` appends: with more than 16 partitions a fetch is smaller.
 */
export const FETCHED_BYTES = 4 * MiB
export const FETCHED_BYTES_MIN = 64 * 1024
export const FETCHED_AT_ONCE_BYTES = 64 * MiB
/** Reads that find nothing until a log counts as shorter. Kafka answers each after 50 ms. */
export const EMPTY_READS_MAX = 100
/**
 * With `--max-rate`: records of one batch or of one step, and bytes of one fetch. At 20,000 records a second a step is
 * some 25 ms, and a fetch 50 ms. Larger steps are bursts, which delay a live projection. Smaller fetches cost more:
 * each brings the batch of the last record again.
 */
export const THROTTLED_RECORDS = 500
export const THROTTLED_BYTES = 512 * 1024
/** With `--max-rate`: milliseconds of delay that are made up for. */
export const THROTTLE_SLACK_MS = 200
/** With `--max-rate`: milliseconds of one wait. A signal is noticed after it. */
export const THROTTLE_WAIT_MS = 100
/**
 * Milliseconds between the change of `message.timestamp.type` and the first appended record: brokers use it a little
 * later.
 */
export const TIMES_KEPT_WAIT_MS = 2_000

/**
 * Milliseconds that past positions must be older than the begin of a snapshot. The clock of the node that dated the
 * snapshot must not have been set back by more since: the positions have the latest date of all clocks.
 */
export const REWIND_MARGIN_MS = 60_000

/** Documents of one search, and of one bulk request, while documents that no log has are found and removed. */
export const LEFTOVERS_PAGE = 5_000
export const LEFTOVERS_REMOVED_AT_ONCE = 100
/** Documents that are found once. If there are more, each is looked for again when it is removed. */
export const LEFTOVERS_HELD = 100_000
/** Ids of removed documents that are printed. */
export const LEFTOVERS_SHOWN = 20
/**
 * Milliseconds until all that the API reads at a position is over. Totals take the longest: a sum is made to its end,
 * up to `TOTALS_TIME_MAX`, after the request that began it, and is remembered.
 */
export const READERS_GONE_MS = 40_000
/**
 * Milliseconds until Elasticsearch takes an earlier version of a deleted document, at most. It remembers the later one
 * for a minute (`index.gc_deletes`), unless the setting is another.
 */
export const FORGET_WAIT_MS = 600_000

/** Looks at the signature of an archive's manifest, and milliseconds between them: a run signs each new manifest. */
export const NOTE_POLLS = 20
export const NOTE_POLL_MS = 250
