/** Signals to a command: the first one stops it where it can continue later, the second one ends it at once. */
import type { EventEmitter } from 'node:events'
import { STOP_TIMEOUT_MS } from '../core/projection/index.ts'
import { type ExitCode, exitCodes, Stopped } from './failures.ts'

/** The terminal sends Ctrl-C to npm and to this process, and npm forwards it. Signals within this time count as one. */
const SAME_SIGNAL_MS = 500

type Process = Pick<EventEmitter, 'on'> & { readonly exit: (code: number) => void }

export type Stop = {
  /** Begins to listen for signals. The first one aborts the result. */
  readonly signal: () => AbortSignal
  /** The exit code of a command that ended with this one: after Ctrl-C, not done is interrupted. */
  readonly codeOf: (code: ExitCode) => ExitCode
}

export const createStop = (say: (line: string) => void, program: Process): Stop => {
  let isInterrupted = false
  const codeOf = (code: ExitCode): ExitCode =>
    isInterrupted && code === exitCodes.failed ? exitCodes.interrupted : code
  const signal = (): AbortSignal => {
    const stopping = new AbortController()
    for (const name of ['SIGTERM', 'SIGINT'] as const) {
      let last = Number.NEGATIVE_INFINITY
      program.on(name, () => {
        if (performance.now() - last < SAME_SIGNAL_MS) return
        last = performance.now()
        isInterrupted ||= name === 'SIGINT'
        if (stopping.signal.aborted) {
          say('stopped')
          program.exit(codeOf(exitCodes.failed))
        }
        stopping.abort(new Stopped())
        // Writing the output may hang: its reader may have stopped reading.
        setTimeout(() => {
          say(`stopped: it did not end within ${STOP_TIMEOUT_MS / 1_000} s`)
          program.exit(codeOf(exitCodes.failed))
        }, STOP_TIMEOUT_MS).unref()
      })
    }
    return stopping.signal
  }
  return { signal, codeOf }
}
