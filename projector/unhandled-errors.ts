/**
 * Ends the process at an unhandled error: half-done work must not be published.
 * Promises: reports the class and place of the error, never its message. The exit code is UNHANDLED_EXIT_CODE.
 */
import { type ErrorPlace, errorPlace, UNHANDLED_EXIT_CODE } from '../schemas/error-place.ts'

export const endAtUnhandledErrors = (
  program: Pick<NodeJS.Process, 'on' | 'exit'>,
  say: (place: ErrorPlace) => void,
): void => {
  const end = (error: unknown): void => {
    try {
      say(errorPlace(error))
    } finally {
      program.exit(UNHANDLED_EXIT_CODE)
    }
  }
  program.on('unhandledRejection', end)
  program.on('uncaughtException', end)
}
