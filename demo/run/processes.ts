/** Runs projector and API as an operator does: processes of their own, that log to a file and stop at SIGTERM. */
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { leaveWill } from '../../services/cleanup-on-exit.ts'
import type { Environment } from '../../services/service.ts'

export type RunningProcess = {
  /** Settles when it ends without having been asked to, with the end of its log. */
  readonly died: Promise<Error>
  /** Asks it to end, waits, and kills it when it does not. */
  readonly stop: () => Promise<void>
}

export type Program = {
  readonly name: string
  /** What runs it: the program, and its arguments. */
  readonly command: readonly [program: string, ...args: string[]]
  readonly environment: Environment
  readonly logFile: string
}

/** Milliseconds a clean stop may take: both promise 10 s. */
const STOP_TIME_MAX = 12_000
/** Lines of its log that are shown when it died. */
const LINES_SHOWN = 20

/** It ends with this process, however that ends. */
export const startProcess = ({ name, command: [program, ...args], environment, logFile }: Program): RunningProcess => {
  const output = openSync(logFile, 'a')
  // In a process group of its own: a Ctrl-C in the terminal reaches the demo, which stops it in its turn.
  const child = spawn(program, args, { env: environment, stdio: ['ignore', output, output], detached: true })
  closeSync(output)
  const will = child.pid === undefined ? undefined : leaveWill('kill -KILL "$0"', String(child.pid))

  let stopping = false
  const ended = Promise.withResolvers<string>()
  const death = Promise.withResolvers<Error>()
  child.once('exit', (code, signal) => ended.resolve(`ended with ${code ?? signal}`))
  child.once('error', error => ended.resolve(`could not be run: ${error.message}`))
  void ended.promise.then(async how => {
    await will?.revoke()
    if (!stopping) death.resolve(await describeDeath(name, how, logFile))
  })
  return {
    died: death.promise,
    stop: async () => {
      stopping = true
      child.kill('SIGTERM')
      const late = new AbortController()
      await Promise.race([ended.promise, delay(STOP_TIME_MAX, undefined, late).catch(() => undefined)])
      late.abort()
      child.kill('SIGKILL')
      await ended.promise
    },
  }
}

const describeDeath = async (name: string, how: string, logFile: string): Promise<Error> => {
  const log = await readFile(logFile, 'utf8').catch(() => '')
  const last = log.trimEnd().split('\n').slice(-LINES_SHOWN)
  return new Error([`The ${name} ${how}. The end of its log:`, ...last].join('\n'))
}
