/** nginx as a process of this machine. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { nginxProgram } from './programs.ts'
import type { Scope } from './scope.ts'

/** Starts nginx with a configuration, which is written to the folder. It may not answer yet. */
export const startNginx = async (scope: Scope, folder: string, configuration: string, own: string): Promise<void> => {
  const file = join(folder, 'nginx.conf')
  await writeFile(file, configuration)
  const nginx = spawn(nginxProgram ?? '', ['-p', folder, '-c', file, '-e', 'stderr', '-g', own])
  const ended = once(nginx, 'exit')
  scope.onTestFinished(async () => {
    nginx.kill('SIGKILL')
    await ended
  })
}
