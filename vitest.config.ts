import { defineConfig } from 'vitest/config'
import { type ProjectName, projects } from './test/projects.ts'
import { compileCache } from './test/support/compile-cache.ts'
import Sequencer from './test/support/sequencer.ts'

// For the workers of the test runner, and the processes that they start with their environment.
Object.assign(process.env, compileCache)

const startingProcesses = {
  environment: 'node',
  pool: 'forks' as const,
  // The Kafka client sets timers with a negative delay; Node's warning about them is noise.
  execArgv: ['--disable-warning=TimeoutNegativeWarning'],
  // These limits promise nothing. A test of three minutes on a quiet machine takes more than five on a busy one.
  hookTimeout: 900_000,
  testTimeout: 900_000,
  // A poll ends when its condition holds: a second, the default, is a timed test on a busy machine.
  expect: { poll: { timeout: 60_000 } },
}
const sharedServices = { globalSetup: ['test/support/global-services.ts'] }

// Every test of these starts processes. More of them at once take as long together, and each of them takes longer.
const flow = { ...startingProcesses, ...sharedServices, maxWorkers: 2, maxConcurrency: 2 }

// These wait longer, for leases and time limits: the third one takes the cores meanwhile.
const flowLong = { ...flow, maxWorkers: 3 }

// Tests that kill, freeze and starve processes: each file uses both cores, or waits for minutes.
const oneFileAtATime = { ...startingProcesses, maxWorkers: 1 }

// Long: a thousand schedules take 2 to 5 minutes, and on a busy machine more than twice as long.
const simulation = { environment: 'node', maxWorkers: '100%', testTimeout: 1_800_000 }

// Projects run one after the other, in this order: tests that measure seconds need the cores for themselves. Projects
// that start no services run together.
const withoutServices = new Set(['unit', 'simulation', 'simulation-long'])
const options = {
  // Long: on a busy machine tests with random input take many times as long. One took three minutes at a load of 20.
  unit: { environment: 'node', maxWorkers: '100%', testTimeout: 300_000, expect: { poll: { timeout: 60_000 } } },
  simulation,
  flow,
  'simulation-long': simulation,
  'flow-more': flow,
  'flow-long': flowLong,
  // Two at a time: these mostly wait, and each kills only what no other one uses.
  'faults-first': { ...oneFileAtATime, ...sharedServices, maxWorkers: 2 },
  processes: { ...oneFileAtATime, ...sharedServices },
  faults: oneFileAtATime,
} satisfies Record<ProjectName, object>

export default defineConfig({
  test: {
    sequence: { sequencer: Sequencer },
    projects: Object.entries(options).map(([name, settings], order) => {
      const { include, exclude } = projects[name as ProjectName]
      const groupOrder = withoutServices.has(name) ? 0 : order
      return { test: { name, sequence: { groupOrder }, include, exclude, ...settings } }
    }),
  },
})
