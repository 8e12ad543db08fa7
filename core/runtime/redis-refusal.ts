/** The word with which Redis refuses a command. */

/**
 * Returns the first word of an answer of Redis that is an error, such as READONLY of a replica; undefined for any other
 * error. Never more of the message: it may have addresses. An older Redis quotes the error of a script at the end.
 */
export const redisRefusal = (error: unknown): string | undefined =>
  error instanceof Error ? /^(?:ERR .* -)?([A-Z]{2,20}) /.exec(error.message)?.[1] : undefined
