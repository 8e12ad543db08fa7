/**
 * The projects of the test runner: which files each one runs, and which command runs it. `vitest.config.ts` says how
 * each runs; `test/support/run-summary.ts` tells at the end of a run which files ran and which did not.
 */
export type Project = {
  readonly command: string
  readonly include: string[]
  readonly exclude: string[]
  /**
   * Files that begin first, in this order: the longest ones, and those that mostly wait beside those that use a core.
   * The others follow, the largest first. Where the longest file begins last, it runs alone at the end.
   */
  readonly first?: readonly string[]
}

const onServices = ['test/flow/**/*.test.ts', 'test/regression/**/*.test.ts']
const faults = 'test/flow/faults/**'
const long = 'test/{flow,regression}/**/*.long.test.ts'
const longSimulation = 'test/simulation/**/*.long.test.ts'

/**
 * Files that take long, of subjects that unit tests or another file of `npm test` cover, too: these nearly double its
 * time.
 */
export const moreFlow = [
  ...[
    'admin-pages',
    'agents',
    'api-foreign',
    'api-large-answers',
    'api-many-waits',
    'api-shares',
    'api-wait',
    'archive',
    'audit',
    'audit-kafka',
    'client-copy',
    'close',
    'closed-index',
    'evidence',
    'explorer',
    'explorer-pictures',
    'explorer-questions',
    'explorer-reach',
    'indices-made-anew',
    'lost-shard',
    'made-anew',
    'open-transaction',
    'published-again',
    'restart-api',
    'sealed-vault',
    'start-order',
    'unread-logs',
    'written-by-others',
    'wrong-clocks',
  ].map(name => `test/flow/${name}.test.ts`),
  ...[
    'added-partition',
    'coordinator-not-found',
    'large-documents',
    'stopped-in-silence',
    'stopped-while-group-waits',
  ].map(name => `test/regression/${name}.test.ts`),
]

export const projects = {
  unit: {
    command: 'npm test',
    include: ['test/**/*.test.ts'],
    exclude: ['test/flow/**', 'test/regression/**', 'test/faults/**', 'test/simulation/**'],
  },
  simulation: { command: 'npm test', include: ['test/simulation/**/*.test.ts'], exclude: [longSimulation] },
  flow: {
    command: 'npm test',
    include: onServices,
    exclude: [faults, long, ...moreFlow],
    first: ['start', 'promises/organizations', 'promises/what-is-projected', 'api-process'].map(
      name => `test/flow/${name}.test.ts`,
    ),
  },
  /** More seeds of the simulation. */
  'simulation-long': {
    command: 'npm run test:full',
    include: [longSimulation],
    exclude: [],
    first: ['foreign-logs', 'frozen', 'second-half', 'pairs'].map(name => `test/simulation/${name}.long.test.ts`),
  },
  'flow-more': {
    command: 'npm run test:full',
    include: moreFlow,
    exclude: [],
    first: [
      'test/flow/archive.test.ts',
      'test/regression/stopped-in-silence.test.ts',
      'test/flow/api-wait.test.ts',
      'test/regression/stopped-while-group-waits.test.ts',
    ],
  },
  /** Tests of the flow that take long; `npm test` has a shorter one of each subject. */
  'flow-long': {
    command: 'npm run test:full',
    include: [long],
    exclude: [faults],
    first: [
      'archive-killed',
      'services-lifetime',
      'publishers',
      'redacted',
      'redacted-twice',
      'access',
      'doctor',
      'alerts-projector',
      'analysts-guide',
      'load',
      'projection',
      'upgrade-keys',
      'replay',
      'large-records',
      'adopt-archive',
      'redacted-killed',
      'change-of-rules',
      'damaged-spare',
      'replay-archive',
      'start-again',
      'follow',
      'restart',
      'client-python',
      'monitoring',
      'demo',
      'shared-group',
      'alerts-api',
    ].map(name => `test/flow/${name}.long.test.ts`),
  },
  /** The named faults that every change must pass before it lands. */
  'faults-first': {
    command: 'npm run test:full',
    include: ['crash-points', 'stuck', 'projector-descriptors']
      .map(name => `test/flow/faults/${name}.test.ts`)
      .concat('test/faults/rig.test.ts', 'test/faults/brokers-restart.test.ts'),
    exclude: [],
    first: ['test/faults/rig.test.ts', 'test/flow/faults/stuck.test.ts', 'test/faults/brokers-restart.test.ts'],
  },
  /** Several projectors each, on services that all files share. */
  processes: { command: 'npm run faults:named', include: [`${faults}/*.test.ts`], exclude: [] },
  /** Each file has services of its own, which it may kill. */
  faults: { command: 'npm run faults:named', include: ['test/faults/**/*.test.ts'], exclude: [] },
} satisfies Record<string, Project>
export type ProjectName = keyof typeof projects
