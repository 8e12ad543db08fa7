/**
 * Runs a server as a Java process and gives the handle on it.
 *
 * Its standard input is a pipe from here, and its launcher ends with that pipe (jvm/Lifeline.java): however this
 * process ends, the server and its folder go too. A server that is frozen or killed cannot notice that; a will stands
 * in for it. It is started in a process group of its own, so that a Ctrl-C in the terminal reaches us and not the
 * server.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { leaveWill, unrefPipe, type Will } from './cleanup-on-exit.ts'
import { temporaryFolder } from './folder.ts'
import type { Environment, Service } from './service.ts'

/** How long a server may take until it serves, cold disks and busy cores included. */
const startMs = 120_000
/** How long it may take to end when asked to; then it is killed. */
const stopMs = 30_000
/** How often it is asked whether it serves. */
const pollMs = 50
/** Of its log, what an error shows. */
const linesShown = 30

/** What Java servers are run with. */
export type JavaHome = { readonly java: string; readonly assembly: string; readonly environment: Environment }

/** How one server is run. */
export type JavaServer = {
  readonly name: string
  readonly address: string
  readonly home: JavaHome
  /** The Java options, the class and its arguments, for a folder that is the server's own. */
  readonly commandLine: (folder: string) => Promise<readonly string[]>
  /** Whether it serves, given what it has logged since it was started. */
  readonly serves: (log: string) => Promise<boolean>
}

/** Starts it and waits until it serves. When it does not, nothing of it is left. */
export const startJavaProcess = async (server: JavaServer): Promise<Service> => {
  const folder = await mkdtemp(join(await temporaryFolder(server.home.environment), `commission-${server.name}-`))
  const death = Promise.withResolvers<Error>()
  let run: Run | undefined
  let will: Will | undefined

  const setWill = async (next?: Will): Promise<void> => {
    const previous = will
    will = next
    await previous?.revoke()
  }
  const start = async (): Promise<void> => {
    const started = await launch(server, folder)
    run = started
    void started.ended.then(how => onEnd(started, how))
    await setWill()
    await untilServing(server, started)
  }
  const onEnd = async (ended: Run, how: string): Promise<void> => {
    if (run !== ended) return
    run = undefined
    await setWill(leaveWill('rm -rf "$0"', folder))
    death.resolve(await failure(server, ended, how))
  }
  const end = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    if (run === undefined) return
    const ending = run
    run = undefined
    await setWill(leaveWill('rm -rf "$0"', folder))
    await endRun(ending, signal)
  }
  const service: Service = {
    name: server.name,
    address: server.address,
    died: death.promise,
    get pid() {
      return run?.child.pid
    },
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    freeze: async () => {
      if (run?.child.pid === undefined) return
      await setWill(leaveWill('kill -CONT "$0"', String(run.child.pid)))
      run?.child.kill('SIGSTOP')
    },
    thaw: async () => {
      if (run === undefined) return
      run.child.kill('SIGCONT')
      await setWill()
    },
    restart: async () => {
      await end('SIGTERM')
      await start()
    },
    // Nobody needs the data any more, so it need not be written first.
    [Symbol.asyncDispose]: async () => {
      await end('SIGKILL')
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
      await setWill()
    },
  }

  try {
    await start()
    return service
  } catch (error) {
    await service[Symbol.asyncDispose]()
    throw error
  }
}

type Run = {
  readonly child: ChildProcess
  /** Settles when the process has ended, with how it ended. */
  readonly ended: Promise<string>
  readonly hasEnded: () => boolean
  /** What this run has logged so far. */
  readonly log: () => Promise<string>
}

const launch = async (server: JavaServer, folder: string): Promise<Run> => {
  await mkdir(join(folder, 'tmp'), { recursive: true })
  const args = await server.commandLine(folder)
  const logFile = join(folder, 'log')
  await using output = await open(logFile, 'a')
  const { size } = await output.stat()

  const child = spawn(server.home.java, [`-Djava.io.tmpdir=${join(folder, 'tmp')}`, ...args], {
    cwd: folder,
    env: server.home.environment,
    detached: true,
    stdio: ['pipe', output.fd, output.fd],
  })
  child.unref()
  unrefPipe(child.stdin)

  const end = Promise.withResolvers<string>()
  child.once('exit', (code, signal) => end.resolve(`ended with ${code ?? signal}`))
  child.once('error', error => end.resolve(`could not be run: ${error.message}`))
  let hasEnded = false
  void end.promise.then(() => {
    hasEnded = true
  })
  return {
    child,
    ended: end.promise,
    hasEnded: () => hasEnded,
    log: async () => (await readFile(logFile)).subarray(size).toString(),
  }
}

const untilServing = async (server: JavaServer, run: Run): Promise<void> => {
  const deadline = Date.now() + startMs
  while (!(await server.serves(await run.log()))) {
    if (run.hasEnded()) throw await failure(server, run, `${await run.ended} before it served`)
    if (Date.now() > deadline) throw await failure(server, run, `does not serve after ${startMs / 1000} s`)
    await delay(pollMs)
  }
}

const endRun = async ({ child, ended, hasEnded }: Run, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
  if (hasEnded()) return
  child.ref()
  child.kill(signal)
  // A frozen process would take the signal only once it goes on.
  child.kill('SIGCONT')
  const givenUp = new AbortController()
  await Promise.race([ended, delay(stopMs, undefined, givenUp).catch(() => undefined)])
  givenUp.abort()
  child.kill('SIGKILL')
  await ended
}

const failure = async (server: JavaServer, run: Run, what: string): Promise<Error> => {
  const log = await run.log().catch(() => '')
  const last = log.trimEnd().split('\n').slice(-linesShown)
  return new Error([`${server.name} ${what}. The end of its log:`, ...last].join('\n'))
}
