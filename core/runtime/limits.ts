/** The limits of the runtime library: what each counts, its unit, and its reason. */

/** Seconds of Retry-After, chosen at random: minimum and maximum. */
export const RETRY_AFTER_MIN = 1
export const RETRY_AFTER_MAX = 3

/** Milliseconds before a retry: doubled each time, from first to last. Half of it is random. */
export const RETRY_FIRST_MS = 50
export const RETRY_LAST_MS = 5_000

/** Milliseconds to connect to Redis. */
export const REDIS_CONNECT_TIME_MAX = 1_000

/** The picture of the age on a status page: milliseconds between two ages, and how many are held: ten minutes. */
export const AGE_INTERVAL_MS = 3_000
export const AGES_MAX = 200

/** Milliseconds of age above which a status page calls the data old: as the alert CommissionStale. */
export const STALE_AGE_MS = 60_000
