/** Resolves when a long-running process must stop: at a signal, or when the npm that runs it is gone. */
import { isAlive } from './run-program.ts'

const pollMs = 500

/** Resolves with the reason to stop. Keeps the process running until then. */
export const waitForInterruption = async (own: NodeJS.Process): Promise<string> => {
  const interrupted = Promise.withResolvers<string>()
  // `on`, not `once`: npm forwards a Ctrl-C that the terminal has already sent to this process.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) own.on(signal, () => interrupted.resolve(signal))

  // npm forwards SIGTERM, but cannot forward SIGKILL. Our scripts `exec` their process, so that npm is the parent.
  const npm = own.env.npm_lifecycle_event === undefined ? undefined : own.ppid
  const timer = setInterval(() => {
    if (npm !== undefined && !isAlive(npm)) interrupted.resolve('npm is gone')
  }, pollMs)
  try {
    return await interrupted.promise
  } finally {
    clearInterval(timer)
  }
}
