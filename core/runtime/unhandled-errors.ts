/**
 * Ends the process at an unhandled error: half-done work must not be published.
 * Promises: reports the class and location of the error, never its message. The exit code is UNHANDLED_EXIT_CODE.
 *
 * The linter refuses most promises that nothing waits for. It misses a dropped promise of `node:fs/promises` or
 * `node:timers/promises`, one behind `void`, and `resolve(promise)` of a settled promise. It mistakes `map.get(key)`
 * for a promise: write `!== undefined`.
 */
import { type ErrorLocation, errorLocation, UNHANDLED_EXIT_CODE } from './error-location.ts'

export const endAtUnhandledErrors = (
  program: Pick<NodeJS.Process, 'on' | 'exit'>,
  onUnhandled: (location: ErrorLocation) => void,
): void => {
  const end = (error: unknown): void => {
    try {
      onUnhandled(errorLocation(error))
    } finally {
      program.exit(UNHANDLED_EXIT_CODE)
    }
  }
  program.on('unhandledRejection', end)
  program.on('uncaughtException', end)
}
