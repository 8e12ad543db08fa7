/** Helm, built by Go from `test/deploy/programs`, and what it renders from the chart of deploy/chart/. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { CHART } from '../contract/chart-files.ts'
import { goProgram } from './programs.ts'

/** The first run compiles Helm, for some minutes. Go keeps it for the next one. */
export const BUILD_TIMEOUT_MS = 600_000

/** Runs a program with Go in the folder of its module. */
export const runGo = async (...args: readonly string[]): Promise<string> => {
  const cwd = join(import.meta.dirname, '../deploy/programs')
  const { stdout } = await promisify(execFile)(goProgram ?? 'go', args, { cwd, maxBuffer: 64 * 1024 * 1024 })
  return stdout
}

export const helm = (...args: readonly string[]): Promise<string> => runGo('tool', 'helm', ...args)

/** The arguments for the values of an example. That of a second release comes after the values of the first one. */
export const exampleValues = (example: string): string[] =>
  [...(example === 'rules-change.yaml' ? ['plain.yaml'] : []), example].flatMap(name => [
    '-f',
    join(CHART, 'examples', name),
  ])

/** Renders the chart for the oldest version of Kubernetes that it accepts. */
export const renderChart = (...args: readonly string[]): Promise<string> =>
  helm('template', 'commission', CHART, '--kube-version', '1.30.0', ...args)
