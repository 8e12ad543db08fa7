/** When a process that runs until interrupted has to stop: at a signal, or when the npm that runs it is gone. */
import { spawnSync } from 'node:child_process'
import { basename } from 'node:path'
import { isAlive } from './tools.ts'

/** How often is looked whether npm is still there. */
const lookMs = 500

/** Resolves when there is reason to stop, with the reason. Until then it keeps the process running. */
export const untilInterrupted = async (own: NodeJS.Process): Promise<string> => {
  const interrupted = Promise.withResolvers<string>()
  // For good, and not once: npm passes a Ctrl-C on that the terminal has sent here already.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) own.on(signal, () => interrupted.resolve(signal))

  const npm = npmAbove(own)
  const looking = setInterval(() => {
    if (npm.some(pid => !isAlive(pid))) interrupted.resolve('npm is gone')
  }, lookMs)
  try {
    return await interrupted.promise
  } finally {
    clearInterval(looking)
  }
}

/** npm passes SIGTERM to the shell between it and us, which ends without a word to us; after SIGKILL nobody tells us either. */
const npmAbove = (own: NodeJS.Process): number[] => {
  if (own.env.npm_lifecycle_event === undefined) return []
  const { stdout } = spawnSync('ps', ['-o', 'ppid=,comm=', '-p', String(own.ppid)], { encoding: 'utf8' })
  const [above, program = ''] = (stdout ?? '').trim().split(/\s+/)
  const isShell = /^-?\w*sh$/.test(basename(program))
  return isShell ? [own.ppid, Number(above)] : [own.ppid]
}
