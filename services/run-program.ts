/** Runs a command-line program to its end, ends child processes, and checks whether a process is alive. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { runOnExit } from './cleanup-on-exit.ts'
import type { Environment } from './service.ts'

const linesKept = 30

type ToolRun = {
  readonly folder: string
  readonly environment: Environment
  readonly onLine?: (line: string) => void
}

/** Runs a program, which ends when this process does. @throws Error with its last output if it does not exit with 0 */
export const runTool = async (program: string, args: readonly string[], run: ToolRun): Promise<void> => {
  const child = spawn(program, args, { cwd: run.folder, env: run.environment, stdio: ['ignore', 'pipe', 'pipe'] })
  const exitHook = child.pid === undefined ? undefined : runOnExit('kill "$0"', String(child.pid))
  const ended = once(child, 'close')
  const last: string[] = []
  for (const output of [child.stdout, child.stderr]) {
    createInterface(output).on('line', line => {
      last.push(line)
      if (last.length > linesKept) last.shift()
      run.onLine?.(line)
    })
  }
  const [code, signal] = await ended.finally(() => exitHook?.revoke())
  if (code !== 0) throw new Error([`${program} ended with ${code ?? signal}:`, ...last].join('\n'))
}

/** Resolves when a child process has exited or could not be started, with words for it. Never rejects. */
export const exitOf = (child: ChildProcess): Promise<string> => {
  const { promise, resolve } = Promise.withResolvers<string>()
  child.once('exit', (code, signal) => resolve(`ended with ${code ?? signal}`))
  child.once('error', error => resolve(`could not be run: ${error.message}`))
  return promise
}

/** Sends a signal and waits for the exit. After these milliseconds sends SIGKILL. */
export const endProcess = async (
  child: ChildProcess,
  exited: Promise<unknown>,
  signal: 'SIGTERM' | 'SIGKILL',
  milliseconds: number,
): Promise<void> => {
  child.kill(signal)
  // A frozen process takes the signal only after SIGCONT.
  child.kill('SIGCONT')
  const late = new AbortController()
  await Promise.race([exited, delay(milliseconds, undefined, late).catch(() => undefined)])
  late.abort()
  child.kill('SIGKILL')
  await exited
}

/** Returns an error with a message and the last lines of a log. */
export const errorWithLog = (message: string, log: string): Error =>
  new Error([`${message}. The end of its log:`, ...log.trimEnd().split('\n').slice(-linesKept)].join('\n'))

/** Whether a process with this id exists, zombies included. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
