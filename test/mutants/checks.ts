/** The checks that may notice a planted bug, each as a command line of Node. */
import { moreFlow } from '../projects.ts'
import type { Mutant } from './mutant.ts'

export type Check = {
  readonly name: string
  readonly args: readonly string[]
  /** All of its tests are among the unit tests. */
  readonly isUnit: boolean
}

const SIMULATION = 'test/simulation/main.ts'

const vitest = (...args: string[]): string[] => ['node_modules/vitest/vitest.mjs', ...args, '--bail=1']
const projectOf = (test: string): string => {
  if (test.startsWith('test/simulation/')) return 'simulation'
  if (!/^test\/(?:flow|regression)\//.test(test)) return 'unit'
  if (test.endsWith('.long.test.ts')) return 'flow-long'
  return moreFlow.includes(test) ? 'flow-more' : 'flow'
}

export const unit: Check = {
  name: 'unit tests',
  isUnit: true,
  args: vitest(
    'run',
    '--project',
    'unit',
    ...['core', 'projector', 'api', 'tools', 'schemas', 'golden'].map(of => `test/${of}`),
  ),
}
export const simulation = (seeds: string): Check => ({
  name: 'simulation',
  isUnit: false,
  args: [SIMULATION, '--seeds', seeds],
})

/** The unit tests that import a file, directly or not: seconds instead of a minute. */
export const nearby = (file: string): Check => ({
  name: 'unit tests nearby',
  isUnit: true,
  args: vitest('related', file, '--run', '--project', 'unit', '--passWithNoTests'),
})

/** The test that the bug names, if any. */
export const flowOf = ({ flow }: Mutant): Check[] => (flow === undefined ? [] : [oneFile(flow)])

/** One test file: the one that noticed a bug before. */
export const oneFile = (test: string): Check => ({
  name: test.replace(/^test\/|\.test\.ts$/g, ''),
  isUnit: projectOf(test) === 'unit',
  args: vitest('run', '--project', projectOf(test), test),
})

/** The file of the first test that failed, from the output of vitest. */
export const failedFile = (output: string): string | undefined => / FAIL .*?(test\/\S+\.test\.ts)/.exec(output)?.[1]
