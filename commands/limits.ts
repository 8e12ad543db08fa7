/** Every limit of the commands: what it counts, its unit, and why it is what it is. */

import { DRAIN_TIMEOUT_MS, FOLLOW_MS, STREAMS_STOP_TIMEOUT_MS } from '../projector/limits.ts'

const MiB = 1024 * 1024

/** Records listed, unless more are asked for. */
export const LIST_DEFAULT = 50
/** Keys of one organization that are listed. */
export const KEYS_MAX = 10_000
/** Records of one run of a command: what is behind them is said, and is for the next run. */
export const RECORDS_MAX = 10_000
/** Hits of one search, without their bytes. */
export const SEARCH_HITS = 1_000
/**
 * Records published before their outcome is waited for, and bytes of them as they are stored, in base64; more only
 * where one has more.
 */
export const CHUNK_RECORDS = 100
export const CHUNK_BYTES = 6 * MiB
/** Seconds to wait until the projector has published what lies in Kafka, unless told otherwise. */
export const WAIT_DEFAULT_S = 60
/** Milliseconds between two looks at the projector's positions. */
export const LOOK_MS = 100
/** Characters of a value, and bytes of one that is no text, that `show` prints; all of them only on request. */
export const SHOWN_CHARACTERS = 4_000
export const SHOWN_BYTES = 512
/** Characters of an event's own words in a column of a table. */
export const COLUMN_CHARACTERS = 40
/**
 * Bytes of stored bodies that one answer of a scan may hold; more only where one document has more. Parsed they take
 * several times that.
 */
export const SCAN_BYTES = 8 * MiB
/**
 * Bytes at which an answer of several documents is cut off, and fewer are asked for: sizes that are stored wrong cannot
 * fill memory.
 */
export const SCAN_ANSWER_BYTES = 32 * MiB
/** Documents whose sizes a scan asks for at once: at first, and at most. */
export const SCAN_SIZES_FIRST = 8
export const SCAN_SIZES = 1_000
/**
 * Bytes of bodies that Elasticsearch loads, one after the other, to say the sizes of one page: some hundred
 * milliseconds.
 */
export const SCAN_LOADED_BYTES = 64 * MiB
/** Documents by id whose sizes are asked for at once. */
export const SIZES_AT_ONCE = 32
/** Documents of one kind and organization whose ids are held at once to find those that differ. */
export const DIFFERING_HELD = 50_000
/** Digests that the documents of one kind and organization are divided into where there are more. */
export const DIFFERING_BUCKETS = 4_096
/** Milliseconds between two lines that say how far a command is that reads for long. */
export const READING_TOLD_MS = 10_000
/** Records that differ, and positions that would no longer be parked, shown of two generations. */
export const DIFFERENCES_SHOWN = 10
/**
 * Documents of each generation that are compared at a time, field by field, or explained; fewer where they are large.
 */
export const COMPARED_DOCUMENTS = 100
/** Rows of a table: its columns are as wide as what is in them. */
export const TABLE_ROWS = 1_000
/** Milliseconds to wait until a generation is as far as the live one, and until projectors have let one go. */
export const SWAP_WAIT_MS = 60_000
/**
 * Milliseconds that a generation may lie behind the one it follows when it is made live: it can never be as far at one
 * look. Readers wait for so long, and no longer than 1,500 (`api/limits.ts`).
 */
export const SWAP_NEAR_MS = 400
export const NEAR_LOOK_MS = 10
export const DROP_WAIT_MS = 60_000
/**
 * Milliseconds in which a projector that runs well lets a generation go: it looks, publishes what it has read and
 * leaves its group. Then, without a change of any of its positions: a projector that keeps it up writes the time of
 * each in less than one second.
 */
export const LET_GO_MS = FOLLOW_MS + DRAIN_TIMEOUT_MS + STREAMS_STOP_TIMEOUT_MS + 1_500
export const QUIET_MS = 5_000
export const QUIET_LOOK_MS = 500
/**
 * Documents of the control index that are looked through for generations: a position of each partition of each of them.
 */
export const REMAINS_MAX = 10_000
/**
 * Records that a generation may have got since it was found equal: so many, or a part of what was compared. The same
 * programs projected them from equal documents. More would make an old comparison stand for documents that somebody may
 * have changed since.
 */
export const SWAP_UNCOMPARED_RECORDS = 100_000
export const SWAP_UNCOMPARED_PART = 10
/** Milliseconds between two lines that say how far a rebuild is, where nobody looks at a terminal. */
export const REBUILD_TOLD_MS = 10_000
/** Records of a page of an export. */
export const EXPORT_PAGE = 200
/** Rows of a Parquet table that are in memory together: of lines with the longest descriptions some 40 MB. */
export const TABLE_GROUP_ROWS = 10_000
/** Times that a read is tried which Elasticsearch does not answer, and milliseconds between two. */
export const READ_ATTEMPTS = 30
export const READ_AGAIN_MS = 1_000
/**
 * Milliseconds between two signs of life that an export gives beside its files, and how long another machine waits for
 * one: longer than a network file system remembers the time of a file (60 s).
 */
export const LOCK_BEAT_MS = 5_000
export const LOCK_WATCHED_MS = 90_000
