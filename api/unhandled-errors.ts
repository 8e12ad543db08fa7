/**
 * In: errors of the process that nothing listened for. Out: a line in the log with class and place, and a count.
 * Promises: no message is logged. A promise that was rejected ends nothing: other requests are answered on. An
 *   exception that nothing caught ends the process: a callback stopped half-way, and what it left could make a later
 *   answer wrong.
 */
import type { Log } from './http/log.ts'

type Parts = {
  readonly log: Pick<Log, 'unhandled'>
  readonly count: () => void
  /** Ends the process, with UNHANDLED_EXIT_CODE. */
  readonly end: () => void
}

export const handleUnhandledErrors = (events: Pick<NodeJS.Process, 'on'>, { log, count, end }: Parts): void => {
  events.on('unhandledRejection', error => {
    count()
    log.unhandled('error', error)
  })
  events.on('uncaughtException', error => {
    try {
      log.unhandled('fatal', error)
    } finally {
      end()
    }
  })
}
