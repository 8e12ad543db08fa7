/** Signals to a command: the first one stops it where it can continue later, the second one ends it at once. */
import type { EventEmitter } from 'node:events'
import { STOP_TIMEOUT_MS } from '../core/projection/index.ts'
import { CommandError, exitCodes } from './failures.ts'

/** The terminal sends Ctrl-C to npm and to this process, and npm forwards it. Signals within this time count as one. */
const SAME_SIGNAL_MS = 500

type Process = Pick<EventEmitter, 'on'> & { readonly exit: (code: number) => void }

/** Returns a function that begins to listen for signals. The first one aborts the `AbortSignal` that it returns. */
export const createStop = (say: (line: string) => void, program: Process) => (): AbortSignal => {
  const stopping = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    let last = Number.NEGATIVE_INFINITY
    program.on(signal, () => {
      if (performance.now() - last < SAME_SIGNAL_MS) return
      last = performance.now()
      if (stopping.signal.aborted) {
        say('stopped')
        program.exit(exitCodes.failed)
      }
      stopping.abort(new CommandError('stopped'))
      // Writing the output may hang: its reader may have stopped reading.
      setTimeout(() => {
        say(`stopped: it did not end within ${STOP_TIMEOUT_MS / 1_000} s`)
        program.exit(exitCodes.failed)
      }, STOP_TIMEOUT_MS).unref()
    })
  }
  return stopping.signal
}
