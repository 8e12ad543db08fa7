import { defineConfig } from 'vitest/config'

const startingProcesses = {
  environment: 'node',
  pool: 'forks' as const,
  // The Kafka client sets timers that are already over; harmless.
  execArgv: ['--disable-warning=TimeoutNegativeWarning'],
  hookTimeout: 120_000,
}

// Tests that kill, freeze and starve processes: each file takes both cores, or waits for minutes.
const oneFileAtATime = { ...startingProcesses, maxWorkers: 1, testTimeout: 300_000 }

export default defineConfig({
  test: {
    // One project after the other: what is measured in seconds must not share two cores with what takes all of them.
    projects: [
      {
        test: {
          name: 'unit',
          sequence: { groupOrder: 0 },
          testTimeout: 30_000,
          include: ['test/**/*.test.ts'],
          exclude: ['test/flow/**', 'test/regression/**', 'test/faults/**', 'test/simulation/**'],
          environment: 'node',
        },
      },
      {
        test: {
          name: 'flow',
          sequence: { groupOrder: 2 },
          include: ['test/flow/**/*.test.ts', 'test/regression/**/*.test.ts'],
          exclude: ['test/flow/faults/**'],
          globalSetup: ['test/support/global-services.ts'],
          ...startingProcesses,
          maxWorkers: 2,
          // Of each file. Every test starts processes: more at once take no less time, and each of them takes longer.
          maxConcurrency: 2,
          testTimeout: 150_000,
        },
      },
      {
        test: {
          name: 'simulation',
          sequence: { groupOrder: 1 },
          include: ['test/simulation/**/*.test.ts'],
          environment: 'node',
          maxWorkers: 2,
          testTimeout: 600_000,
        },
      },
      {
        // Several projectors each, on services that all files share.
        test: {
          name: 'processes',
          sequence: { groupOrder: 3 },
          include: ['test/flow/faults/**/*.test.ts'],
          globalSetup: ['test/support/global-services.ts'],
          ...oneFileAtATime,
        },
      },
      {
        // Each file has services of its own, which it may kill.
        test: {
          name: 'faults',
          sequence: { groupOrder: 4 },
          include: ['test/faults/**/*.test.ts'],
          ...oneFileAtATime,
        },
      },
    ],
  },
})
