/** Runs the project's main files as an operator does, with settings in the environment; other programs too. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { isAbsolute, join } from 'node:path'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import manifest from '../../package.json' with { type: 'json' }
import { runOnExit } from '../../services/cleanup-on-exit.ts'
import { endProcess } from '../../services/run-program.ts'

const root = join(import.meta.dirname, '..', '..')
/** The Kafka client sets timers in the past, which is harmless. */
const quiet = '--disable-warning=TimeoutNegativeWarning'
/** Node's flags in `npm run start:…`, so that the bench measures what an operator starts. */
const flagsOf = (script: string): string[] => {
  const starts = Object.values(manifest.scripts).find(
    command => command.startsWith('exec node ') && command.endsWith(` ${script}`),
  )
  return starts?.match(/ --\S+/g)?.map(flag => flag.trim()) ?? [quiet]
}
/** Milliseconds until a process must be ready, and until it must have ended. */
const START_MS = 60_000
const STOP_MS = 15_000
/** Characters of its output that an error shows. */
const SHOWN = 4_000

type Settings = Readonly<Record<string, string>>

type ProcessOptions = {
  /** A script for Node, or the absolute path of a program. */
  readonly script: string
  readonly settings: Settings
  /** Message of the log line that means ready. */
  readonly ready: string
  readonly flags?: readonly string[]
  readonly signal: AbortSignal
}

/** A log line. `time` is in milliseconds since 1970, by the clock of the process. */
type LogLine = {
  readonly msg: string
  readonly time: number
  readonly port?: number
  readonly admin_port?: number
  readonly address?: { readonly port: number }
}

export type Running = {
  readonly pid: number | undefined
  /** Log lines until it was ready. */
  readonly lines: readonly LogLine[]
  /** The end of its output. */
  readonly last: () => string
  /** The log line that means ready. */
  readonly ready: LogLine
  /** Rejects when the process ends unasked. */
  readonly died: Promise<never>
  /** Stops the process and waits for its end. @throws Error if its exit code is not 0 */
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** Starts a process and waits until it is ready. */
export const startBenchProcess = async (options: ProcessOptions): Promise<Running> => {
  const { script, settings, flags = [], signal } = options
  signal.throwIfAborted()
  // A process group of its own: Ctrl-C reaches only the bench, which then stops it in order.
  const [program, args] = isAbsolute(script)
    ? [script, flags]
    : [process.execPath, [...flagsOf(script), ...flags, join(root, script)]]
  const child = spawn(program, args, {
    cwd: root,
    env: { ...process.env, LOG_LEVEL: 'info', ...settings },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exitHook = runOnExit('kill -9 "$0"', String(child.pid))
  const exit = once(child, 'exit')
  let asked = false
  const output = collectOutput([child.stdout, child.stderr], options.ready)
  const failure = (what: string): Error => new Error(`${script} ${what}. It said last:\n${output.last()}`)
  const died = exit.then(([code, by]) => {
    if (!asked) throw failure(`ended with ${code ?? by}`)
    return new Promise<never>(() => undefined)
  })
  died.catch(() => undefined)

  let stopped: Promise<void> | undefined
  const stopOnce = async (): Promise<void> => {
    asked = true
    await endProcess(child, exit, 'SIGTERM', STOP_MS)
    const [code, by] = await exit
    await exitHook.revoke()
    if (code !== 0) throw failure(`was asked to stop and ended with ${code ?? by}`)
  }
  const stop = (): Promise<void> => {
    stopped ??= stopOnce()
    return stopped
  }
  const started = { pid: child.pid, lines: output.lines, last: output.last, died, stop, [Symbol.asyncDispose]: stop }
  try {
    return { ...started, ready: await Promise.race([output.ready, died, rejectWhenLate(failure, signal)]) }
  } catch (error) {
    await stop().catch(() => undefined)
    throw error
  }
}

const rejectWhenLate = (failure: (what: string) => Error, signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    const timer = setTimeout(() => reject(failure(`was not ready after ${START_MS / 1000} s`)), START_MS)
    timer.unref()
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })

/** Parses lines until the one that means ready. Later output (a line for every request) is read and dropped. */
const collectOutput = (streams: readonly Readable[], message: string) => {
  const ready = Promise.withResolvers<LogLine>()
  const lines: LogLine[] = []
  let last = ''
  for (const stream of streams) {
    let rest = ''
    let isReady = false
    stream.setEncoding('utf8').on('data', (text: string) => {
      last = (last + text).slice(-SHOWN)
      if (isReady) return
      const parts = (rest + text).split('\n')
      rest = parts.pop() ?? ''
      lines.push(...parts.flatMap(part => logLine(part) ?? []))
      const found = lines.find(({ msg }) => msg === message)
      if (found === undefined) return
      isReady = true
      ready.resolve(found)
    })
  }
  return { ready: ready.promise, lines, last: () => last }
}

const logLine = (text: string): LogLine | undefined => {
  try {
    const line: LogLine | null = JSON.parse(text)
    return line?.msg === undefined ? undefined : line
  } catch {
    return undefined
  }
}

/** Runs a script to its end. @throws Error with its output if it fails */
export const runScript = async (script: string, settings: Settings): Promise<void> => {
  await promisify(execFile)(process.execPath, [quiet, join(root, script)], {
    cwd: root,
    env: { ...process.env, ...settings },
  })
}
