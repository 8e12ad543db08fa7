/** Runs projector and API as an operator does: as processes that log to a file and stop on SIGTERM. */
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { runOnExit } from '../../services/cleanup-on-exit.ts'
import { endProcess, errorWithLog, exitOf } from '../../services/run-program.ts'
import type { Environment } from '../../services/service.ts'

type RunningProcess = {
  /** Resolves when the process ends unasked, with the end of its log. */
  readonly died: Promise<Error>
  /** SIGTERM, then SIGKILL if it is still running. */
  readonly stop: () => Promise<void>
}

type Program = {
  readonly name: string
  readonly command: readonly [program: string, ...args: string[]]
  readonly environment: Environment
  readonly logFile: string
}

/** Longest clean stop in milliseconds: both promise 10 s. */
const STOP_TIMEOUT_MS = 12_000

/** The process ends with this one, however this one ends. */
export const startProcess = ({ name, command: [program, ...args], environment, logFile }: Program): RunningProcess => {
  const output = openSync(logFile, 'a')
  // A process group of its own: Ctrl-C in the terminal reaches only the demo, which then stops the process.
  const child = spawn(program, args, { env: environment, stdio: ['ignore', output, output], detached: true })
  closeSync(output)
  const exitHook = child.pid === undefined ? undefined : runOnExit('kill -KILL "$0"', String(child.pid))

  let stopping = false
  const exited = exitOf(child)
  const death = Promise.withResolvers<Error>()
  void exited.then(async how => {
    await exitHook?.revoke()
    if (!stopping) death.resolve(errorWithLog(`The ${name} ${how}`, await readFile(logFile, 'utf8').catch(() => '')))
  })
  return {
    died: death.promise,
    stop: async () => {
      stopping = true
      await endProcess(child, exited, 'SIGTERM', STOP_TIMEOUT_MS)
    },
  }
}

/** Turns a death that resolves with an error into a rejection: `died.then(rethrow)`. */
export const rethrow = (error: Error): never => {
  throw error
}
