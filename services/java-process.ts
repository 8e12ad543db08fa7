/**
 * Runs a server as a Java process and returns its handle.
 *
 * The server's standard input is a pipe from this process, and its launcher ends when the pipe ends
 * (jvm/Lifeline.java): however this process ends, the server and its folder are removed. A frozen or killed server
 * cannot notice the end of the pipe: `runOnExit` covers this case. The server has a process group of its own, so that a
 * Ctrl-C in the terminal does not reach it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type ExitHook, runOnExit, unrefPipe } from './cleanup-on-exit.ts'
import { temporaryFolder } from './folder.ts'
import type { Environment, Service } from './service.ts'

/** Milliseconds until a server must serve, cold disks and busy cores included. */
const startMs = 120_000
/** Milliseconds that a server may take to stop before it is killed. */
const stopMs = 30_000
const pollMs = 50
const linesShown = 30

export type JavaHome = { readonly java: string; readonly assembly: string; readonly environment: Environment }

type JavaServer = {
  readonly name: string
  readonly address: string
  readonly home: JavaHome
  /** Returns the Java options, the class and its arguments. `folder` belongs to this server alone. */
  readonly commandLine: (folder: string) => Promise<readonly string[]>
  /** Whether the server serves. `log` is its output since the last start. */
  readonly serves: (log: string) => Promise<boolean>
}

/** Starts the server and waits until it serves. After a failure nothing of it is left. */
export const startJavaProcess = async (server: JavaServer): Promise<Service> => {
  const folder = await mkdtemp(join(await temporaryFolder(server.home.environment), `commission-${server.name}-`))
  const death = Promise.withResolvers<Error>()
  let run: Run | undefined
  let exitHook: ExitHook | undefined

  const replaceExitHook = async (next?: ExitHook): Promise<void> => {
    const previous = exitHook
    exitHook = next
    await previous?.revoke()
  }
  const start = async (): Promise<void> => {
    const started = await launch(server, folder)
    run = started
    void started.ended.then(how => onEnd(started, how))
    await replaceExitHook()
    await waitUntilServing(server, started)
  }
  const onEnd = async (ended: Run, how: string): Promise<void> => {
    if (run !== ended) return
    run = undefined
    await replaceExitHook(runOnExit('rm -rf "$0"', folder))
    death.resolve(await failure(server, ended, how))
  }
  const end = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    if (run === undefined) return
    const ending = run
    run = undefined
    await replaceExitHook(runOnExit('rm -rf "$0"', folder))
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
      await replaceExitHook(runOnExit('kill -CONT "$0"', String(run.child.pid)))
      run?.child.kill('SIGSTOP')
    },
    thaw: async () => {
      if (run === undefined) return
      run.child.kill('SIGCONT')
      await replaceExitHook()
    },
    restart: async () => {
      await end('SIGTERM')
      await start()
    },
    // The data is deleted next: kill without a last write.
    [Symbol.asyncDispose]: async () => {
      await end('SIGKILL')
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
      await replaceExitHook()
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
  /** Resolves when the process has ended, with the way it ended. */
  readonly ended: Promise<string>
  readonly hasEnded: () => boolean
  /** The output of this run so far. */
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

const waitUntilServing = async (server: JavaServer, run: Run): Promise<void> => {
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
  // A frozen process takes the signal only after SIGCONT.
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
