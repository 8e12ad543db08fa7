/**
 * In: errors of the process that nothing listened for. Out: a log line with class and location, and a count.
 * Promises: no message is logged. After a rejected promise the process continues: other requests are answered. After an
 *   uncaught exception the process ends: its callback stopped half-way, and the state could make a later answer wrong.
 */
import type { Log } from './answer/answer-and-log.ts'

type Parts = {
  readonly log: Pick<Log, 'unhandledError'>
  readonly count: () => void
  /** Ends the process with UNHANDLED_EXIT_CODE. */
  readonly end: () => void
}

/** Listens for both kinds of errors of the process. */
export const handleUnhandledErrors = (events: Pick<NodeJS.Process, 'on'>, { log, count, end }: Parts): void => {
  events.on('unhandledRejection', error => {
    count()
    log.unhandledError('error', error)
  })
  events.on('uncaughtException', error => {
    try {
      log.unhandledError('fatal', error)
    } finally {
      end()
    }
  })
}
