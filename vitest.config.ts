import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/flow/**', 'test/regression/**'],
          environment: 'node',
        },
      },
      {
        test: {
          name: 'flow',
          include: ['test/flow/**/*.test.ts', 'test/regression/**/*.test.ts'],
          globalSetup: ['test/support/global-services.ts'],
          environment: 'node',
          pool: 'forks',
          // The Kafka client sets timers that are already over; harmless.
          execArgv: ['--disable-warning=TimeoutNegativeWarning'],
          maxWorkers: 2,
          testTimeout: 150_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
})
