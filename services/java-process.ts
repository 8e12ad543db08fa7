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
import { endProcess, errorWithLog, exitOf } from './run-program.ts'
import type { Environment, Service } from './service.ts'

/** Milliseconds until a server must serve, cold disks and busy cores included. */
const startMs = 120_000
/** Milliseconds that a server may take to stop before it is killed. */
const stopMs = 30_000
const pollMs = 50

export type JavaHome = { readonly java: string; readonly assembly: string; readonly environment: Environment }

type JavaServer = {
  readonly name: string
  readonly address: string
  readonly home: JavaHome
  /** Returns the Java options, the class and its arguments. `folder` is of this server alone; its data is in `data`. */
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
    void started.exited.then(how => onExit(started, how))
    await replaceExitHook()
    await waitUntilServing(server, started)
  }
  const forgetRun = async (): Promise<void> => {
    run = undefined
    await replaceExitHook(runOnExit('rm -rf "$0"', folder))
  }
  /** Reports an exit that was not asked for. */
  const onExit = async (exitedRun: Run, how: string): Promise<void> => {
    if (run !== exitedRun) return
    await forgetRun()
    death.resolve(await failure(server, exitedRun, how))
  }
  const endServer = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    const current = run
    if (current === undefined) return
    await forgetRun()
    await endRun(current, signal)
  }
  const service: Service = {
    name: server.name,
    address: server.address,
    folder: join(folder, 'data'),
    died: death.promise,
    get pid() {
      return run?.child.pid
    },
    stop: () => endServer('SIGTERM'),
    kill: () => endServer('SIGKILL'),
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
      await endServer('SIGTERM')
      await start()
    },
    // The data is deleted next: kill without a last write.
    [Symbol.asyncDispose]: async () => {
      await endServer('SIGKILL')
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
  /** Resolves when the process has exited, with words for how. */
  readonly exited: Promise<string>
  readonly hasExited: () => boolean
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

  const exited = exitOf(child)
  let hasExited = false
  void exited.then(() => {
    hasExited = true
  })
  return {
    child,
    exited,
    hasExited: () => hasExited,
    log: async () => (await readFile(logFile)).subarray(size).toString(),
  }
}

const waitUntilServing = async (server: JavaServer, run: Run): Promise<void> => {
  const deadline = Date.now() + startMs
  while (!(await server.serves(await run.log()))) {
    if (run.hasExited()) throw await failure(server, run, `${await run.exited} before it served`)
    if (Date.now() > deadline) throw await failure(server, run, `does not serve after ${startMs / 1000} s`)
    await delay(pollMs)
  }
}

const endRun = async ({ child, exited, hasExited }: Run, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
  if (hasExited()) return
  child.ref()
  await endProcess(child, exited, signal, stopMs)
}

const failure = async (server: JavaServer, run: Run, what: string): Promise<Error> =>
  errorWithLog(`${server.name} ${what}`, await run.log().catch(() => ''))
