/** Runs a command-line program to its end, and checks whether a process is alive. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
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

/** Whether a process with this id exists, zombies included. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
