/** Every limit of the commands: what it counts, its unit, and why it is what it is. */

const MiB = 1024 * 1024

/** Records listed, unless more are asked for. */
export const LIST_DEFAULT = 50
/** Keys of one organization that are listed. */
export const KEYS_MAX = 10_000
/** Records of one run of a command: what is behind them is said, and is for the next run. */
export const RECORDS_MAX = 10_000
/** Hits of one search, without their bytes. */
export const SEARCH_HITS = 1_000
/** Records published before their outcome is waited for, and bytes of them as they are stored, in base64; more only where one has more. */
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
/** Documents of one page of a scan: with a margin for large ones, an answer that fits into memory. */
export const SCAN_DOCUMENTS = 500
/** Records that differ, and positions that would no longer be parked, shown of two generations. */
export const DIFFERENCES_SHOWN = 10
/** Documents of each generation that are compared at a time, field by field; fewer where they are large. */
export const COMPARED_DOCUMENTS = 100
/** Rows of a table: its columns are as wide as what is in them. */
export const TABLE_ROWS = 1_000
/** Sandboxes that are listed. */
export const SANDBOXES_MAX = 1_000
/** Milliseconds to wait until a generation is as far as the live one, and until projectors have let one go. */
export const SWAP_WAIT_MS = 60_000
/**
 * Milliseconds that a generation may lie behind the one it follows when it is made live: it can never be as far at one look. Readers wait
 * for so long, and no longer than 1,500 (`api/limits.ts`).
 */
export const SWAP_NEAR_MS = 400
export const NEAR_LOOK_MS = 10
export const DROP_WAIT_MS = 60_000
/** Milliseconds between two lines that say how far a rebuild is, where nobody looks at a terminal. */
export const REBUILD_TOLD_MS = 10_000
/** Records of a page of an export. */
export const EXPORT_PAGE = 200
/** Times that a read is tried which Elasticsearch does not answer, and milliseconds between two. */
export const READ_ATTEMPTS = 30
export const READ_AGAIN_MS = 1_000
