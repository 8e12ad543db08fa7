/** Runs a check in a copy of the program, and kills it when it takes too long. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Check } from './checks.ts'

export type Settings = Readonly<Record<string, string>>

export type Outcome = {
  readonly notices: boolean
  /** The check did not end in time, and was killed. */
  readonly isKilled: boolean
  readonly milliseconds: number
  readonly output: string
}

/** Characters of a check's output that are kept, the last ones. */
const OUTPUT_KEPT = 50_000

const running = new Set<() => void>()
process.once('SIGINT', () => {
  for (const end of running) end()
  process.exit(130)
})

/** After `most` milliseconds the check is killed with all its processes. This counts as noticed. */
export const carryOut = async ({ args }: Check, folder: string, settings: Settings, most: number): Promise<Outcome> => {
  const began = performance.now()
  // A process group of its own, to kill all of it: a worker that a planted bug keeps busy ignores signals and outlives
  // its parent.
  const child = spawn(process.execPath, ['--disable-warning=TimeoutNegativeWarning', ...args], {
    cwd: folder,
    env: { ...process.env, NO_COLOR: '1', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let output = ''
  const keep = (text: string): void => {
    output = (output + text).slice(-OUTPUT_KEPT)
  }
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', keep)
  const end = (): void => {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
  }
  running.add(end)
  let isKilled = false
  const timer = setTimeout(() => {
    isKilled = true
    end()
  }, most)
  const [code] = await once(child, 'close')
  clearTimeout(timer)
  running.delete(end)
  return { notices: code !== 0, isKilled, milliseconds: performance.now() - began, output }
}
