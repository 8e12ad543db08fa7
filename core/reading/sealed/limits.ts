/** Limits of the reads of seal keys. */
import { READ_TIME_MAX } from '../../store/index.ts'
import { READS_OF_ORGANIZATION } from '../limits.ts'

/** Milliseconds for which a seal key, or the receipt of its destruction, is trusted; and keys held meanwhile. */
export const SEAL_KEY_AGE_MAX = 2_000
export const SEAL_KEYS_HELD = 10_000

/** Milliseconds between two log lines that records are refused for the same reason about their seal keys. */
export const SEAL_REPORT_INTERVAL = 10_000

/** Keys that are read from files at once: half of the four threads that Node has for files and names of hosts. */
export const SEAL_FILES_AT_ONCE = 2

/** Milliseconds for an answer of Vault on a connection, connections, and bytes of an answer. A key has some 300. */
export const SEAL_VAULT_TIME_MAX = 2_000
export const SEAL_VAULT_CONNECTIONS = 16
export const SEAL_VAULT_ANSWER_BYTES = 64 * 1024

/** Requests of an organization that read seal keys at once, and keys that they read at once: half the connections. */
export const SEAL_KEY_REQUESTS_OF_ORGANIZATION = { ...READS_OF_ORGANIZATION, permits: 4, waitMax: READ_TIME_MAX }
export const SEAL_KEYS_OF_ORGANIZATION = { permits: SEAL_VAULT_CONNECTIONS / 2, queue: 4, waitMax: READ_TIME_MAX }
