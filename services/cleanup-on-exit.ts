/**
 * What shall be done when this process ends, however it ends: a shell waits for it, at the end of a pipe from here.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Socket } from 'node:net'

/** A will that stands until it is revoked. */
export type Will = { revoke(): Promise<void> }

/** Leaves a will: one shell command, with its arguments as `$0`, `$1`, … */
export const leaveWill = (command: string, ...args: string[]): Will => {
  // A line read is the revocation; the end of the pipe without one is our death.
  const shell = spawn('/bin/sh', ['-c', `read -r revoked || { ${command}; }`, ...args], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const ended = once(shell, 'exit')
  // Someone may have ended the shell: there is nothing to revoke then.
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

/** A pipe to a child keeps this process running, as the child itself does, until both are let go of. */
export const unrefPipe = (pipe: unknown): void => {
  if (pipe instanceof Socket) pipe.unref()
}
