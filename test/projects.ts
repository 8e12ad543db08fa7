/**
 * The projects of the test runner: which files each one runs, and which command runs it. `vitest.config.ts` says how
 * each runs; `test/support/run-summary.ts` tells at the end of a run which files ran and which did not.
 */
export type Project = { readonly command: string; readonly include: string[]; readonly exclude: string[] }

const onServices = ['test/flow/**/*.test.ts', 'test/regression/**/*.test.ts']
const faults = 'test/flow/faults/**'
const long = 'test/{flow,regression}/**/*.long.test.ts'
const longSimulation = 'test/simulation/**/*.long.test.ts'

export const projects = {
  unit: {
    command: 'npm test',
    include: ['test/**/*.test.ts'],
    exclude: ['test/flow/**', 'test/regression/**', 'test/faults/**', 'test/simulation/**'],
  },
  simulation: { command: 'npm test', include: ['test/simulation/**/*.test.ts'], exclude: [longSimulation] },
  flow: { command: 'npm test', include: onServices, exclude: [faults, long] },
  /** More seeds of the simulation. */
  'simulation-long': { command: 'npm run test:full', include: [longSimulation], exclude: [] },
  /** Tests of the flow that take long; `npm test` has a shorter one of each subject. */
  'flow-long': { command: 'npm run test:full', include: [long], exclude: [faults] },
  /** The named faults that every change must pass before it lands. */
  'faults-first': {
    command: 'npm run test:full',
    include: ['crash-points', 'stuck', 'projector-descriptors']
      .map(name => `test/flow/faults/${name}.test.ts`)
      .concat('test/faults/rig.test.ts', 'test/faults/brokers-restart.test.ts'),
    exclude: [],
  },
  /** Several projectors each, on services that all files share. */
  processes: { command: 'npm run faults:named', include: [`${faults}/*.test.ts`], exclude: [] },
  /** Each file has services of its own, which it may kill. */
  faults: { command: 'npm run faults:named', include: ['test/faults/**/*.test.ts'], exclude: [] },
} satisfies Record<string, Project>
export type ProjectName = keyof typeof projects
