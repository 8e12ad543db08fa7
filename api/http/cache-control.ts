/** The `Cache-Control` of answers to an API key. */
import { FIXED_AGE_SECONDS } from '../limits.ts'

/** A client may keep the answer, and asks again whether it is still the same. */
export const REVALIDATED = 'private, no-cache'

/** The answer is as of a change. Only new rules could change it, so a client may keep it for a limited time. */
export const FIXED = `private, max-age=${FIXED_AGE_SECONDS}, immutable`

/** Nobody may keep the answer. */
export const NOT_STORED = 'no-store'
