/** When a process that runs until interrupted has to stop: at a signal, or when the npm that runs it is gone. */
import { isAlive } from './run-program.ts'

/** How often is looked whether npm is still there. */
const lookMs = 500

/** Resolves when there is reason to stop, with the reason. Until then it keeps the process running. */
export const untilInterrupted = async (own: NodeJS.Process): Promise<string> => {
  const interrupted = Promise.withResolvers<string>()
  // For good, and not once: npm passes a Ctrl-C on that the terminal has sent here already.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) own.on(signal, () => interrupted.resolve(signal))

  // npm passes SIGTERM on, but no SIGKILL. Our scripts `exec` their process, so npm itself is the parent.
  const npm = own.env.npm_lifecycle_event === undefined ? undefined : own.ppid
  const looking = setInterval(() => {
    if (npm !== undefined && !isAlive(npm)) interrupted.resolve('npm is gone')
  }, lookMs)
  try {
    return await interrupted.promise
  } finally {
    clearInterval(looking)
  }
}
