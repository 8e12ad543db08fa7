/**
 * Ends the process at an error that nothing listened for: what it left half done must not be published.
 * Promises: its class and place are said, never its message; the exit code is UNHANDLED_EXIT_CODE.
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
