/** Runs a command when this process ends, also by SIGKILL: a shell waits for the end of a pipe from this process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Socket } from 'node:net'

export type ExitHook = { revoke(): Promise<void> }

/** Leaves a shell command, with its arguments as `$0`, `$1`, … It runs when this process ends, unless revoked. */
export const runOnExit = (command: string, ...args: string[]): ExitHook => {
  // A line means that the command is revoked. The end of the pipe without a line means that this process has ended.
  const shell = spawn('/bin/sh', ['-c', `read -r revoked || { ${command}; }`, ...args], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const ended = once(shell, 'exit')
  // If the shell was killed, writing to it fails: there is nothing to revoke.
  shell.stdin.on('error', () => {})
  shell.unref()
  unrefPipe(shell.stdin)
  return {
    revoke: async () => {
      shell.ref()
      shell.stdin.end('\n')
      await ended
    },
  }
}

/** A child and the pipe to it both keep this process running until both are unreferenced. */
export const unrefPipe = (pipe: unknown): void => {
  if (pipe instanceof Socket) pipe.unref()
}
