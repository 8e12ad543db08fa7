/** `commission projection rebuild` as an operator runs it, with a limit of the rate. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { runOnExit } from '../../services/cleanup-on-exit.ts'
import { endProcess } from '../../services/run-program.ts'
import type { Bench } from '../rig/bench.ts'
import type { Topics } from './publish.ts'

const root = join(import.meta.dirname, '..', '..')
/** Milliseconds until it must have ended. */
const STOP_MS = 15_000
/** Characters of its output that an error shows. */
const SHOWN = 4_000

type RunningRebuild = {
  readonly pid: number | undefined
  /** Rejects when the process ends unasked. */
  readonly died: Promise<never>
  /** Stops the process. The generation stays unfinished. */
  [Symbol.asyncDispose](): Promise<void>
}

/** @param maxRate records a second */
export const startRebuild = (
  { elasticsearch, signal }: Bench,
  { settings }: Pick<Topics, 'settings'>,
  prefix: string,
  maxRate: number,
): RunningRebuild => {
  signal.throwIfAborted()
  const args = ['tools/main.ts', 'projection', 'rebuild', '--max-rate', String(maxRate)]
  // A process group of its own: Ctrl-C reaches only the bench, which then stops it in order.
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: {
      ...process.env,
      ...settings,
      ELASTICSEARCH_URL: elasticsearch.url,
      ELASTICSEARCH_INDEX_PREFIX: prefix,
      KAFKA_GROUP_ID: prefix,
    },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exitHook = runOnExit('kill -9 "$0"', String(child.pid))
  let last = ''
  for (const output of [child.stdout, child.stderr]) {
    output.setEncoding('utf8').on('data', (text: string) => {
      last = (last + text).slice(-SHOWN)
    })
  }
  const exit = once(child, 'exit')
  let asked = false
  const died = exit.then(([code, by]) => {
    if (!asked) throw new Error(`a rebuild ended with ${code ?? by} while it was measured. It said last:\n${last}`)
    return new Promise<never>(() => undefined)
  })
  died.catch(() => undefined)
  return {
    pid: child.pid,
    died,
    [Symbol.asyncDispose]: async () => {
      asked = true
      await endProcess(child, exit, 'SIGTERM', STOP_MS)
      await exitHook.revoke()
    },
  }
}
