/**
 * `npm run mutants [-- --quick] [--only TEXT ...] [--from N] [--seeds N]` plants one bug after the other in a copy of
 * the program. It reports which checks notice each bug: the unit tests, the simulation, and for some bugs a test on
 * real services. Exit code 1 when a bug survives. `--quick` runs the unit tests that import the changed file first, and
 * stops at the first check that notices the bug.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { startServices } from '../../services/services.ts'
import type { Mutant } from './mutant.ts'
import { mutants } from './mutants.ts'

const root = join(import.meta.dirname, '..', '..')
const run = promisify(execFile)

type Check = { readonly name: string; readonly args: readonly string[] }
type Settings = Readonly<Record<string, string>>

const vitest = (project: string, ...rest: string[]): string[] => [
  'node_modules/vitest/vitest.mjs',
  'run',
  '--project',
  project,
  '--bail=1',
  ...rest,
]
const unit: Check = {
  name: 'unit tests',
  args: vitest('unit', 'test/projector', 'test/api', 'test/commands', 'test/schemas', 'test/golden'),
}
/** The unit tests that import a file, directly or not: seconds instead of a minute. */
const nearby = ({ file }: Mutant): Check => ({
  name: 'unit tests nearby',
  args: [
    'node_modules/vitest/vitest.mjs',
    'related',
    file,
    '--run',
    '--project',
    'unit',
    '--bail=1',
    '--passWithNoTests',
  ],
})
const simulation = (seeds: string): Check => ({
  name: 'simulation',
  args: ['test/simulation/main.ts', '--seeds', seeds],
})
const projectOf = (test: string): string => {
  if (test.startsWith('test/simulation/')) return 'simulation'
  return test.endsWith('.long.test.ts') ? 'flow-long' : 'flow'
}
const flowOf = ({ flow }: Mutant): Check[] =>
  flow === undefined ? [] : [{ name: flow.replace(/^test\/|\.test\.ts$/g, ''), args: vitest(projectOf(flow), flow) }]

/** Copies all files that git does not ignore, and links the packages. Returns the folder of the copy. */
const copyProgram = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'commission-mutants-'))
  const { stdout } = await run('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: root })
  for (const file of stdout.split('\n').filter(name => name !== '')) {
    await mkdir(dirname(join(folder, file)), { recursive: true })
    await cp(join(root, file), join(folder, file))
  }
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

type Outcome = {
  readonly notices: boolean
  /** The check did not end in time, and was killed. */
  readonly isKilled: boolean
  readonly milliseconds: number
  readonly output: string
}

/** Runs a check. After `most` milliseconds it kills the check with all its processes, and counts this as noticed. */
const carryOut = async (
  { args }: Check,
  folder: string,
  settings: Settings,
  most: number = FIRST_MS,
): Promise<Outcome> => {
  const began = performance.now()
  // A process group of its own, to kill all of it: a worker that a planted bug keeps busy ignores signals and outlives
  // its parent.
  const child = spawn(process.execPath, ['--disable-warning=TimeoutNegativeWarning', ...args], {
    cwd: folder,
    env: { ...process.env, ...settings },
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
  let isKilled = false
  const timer = setTimeout(() => {
    isKilled = true
    end()
  }, most)
  const interrupted = (): void => {
    end()
    process.exit(130)
  }
  process.once('SIGINT', interrupted)
  const [code] = await once(child, 'exit')
  clearTimeout(timer)
  process.off('SIGINT', interrupted)
  return { notices: code !== 0, isKilled, milliseconds: performance.now() - began, output }
}

/** Characters of a check's output that are kept, the last ones. */
const OUTPUT_KEPT = 4_000
/** Milliseconds. */
const FIRST_MS = 8 * 60_000
/** With a planted bug a check may take `TIMES` times as long, plus `MORE_MS`. */
const TIMES = 3
const MORE_MS = 30_000

const planted = async (folder: string, { file, find, replace }: Mutant, task: () => Promise<void>): Promise<void> => {
  const path = join(folder, file)
  const text = await readFile(path, 'utf8')
  if (text.split(find).length !== 2) throw new Error(`${file}: does not hold the text to replace exactly once`)
  await writeFile(
    path,
    text.replace(find, () => replace),
  )
  try {
    await task()
  } finally {
    await writeFile(path, text)
  }
}

const main = async (): Promise<number> => {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true, default: [''] },
      from: { type: 'string', default: '1' },
      seeds: { type: 'string', default: '300' },
    },
  })
  const isChosen = ({ name }: Mutant): boolean => values.only.some(text => name.includes(text))
  const chosen = mutants.filter(isChosen).slice(Number(values.from) - 1)
  await using services = await startServices({ say: console.log, environment: process.env })
  const settings = { KAFKA_BROKERS: services.kafkaBrokers, ELASTICSEARCH_URL: services.elasticsearchUrl }
  const folder = await copyProgram()
  try {
    const always = [unit, simulation(values.seeds)]
    const most = new Map<string, number>()
    const flows = new Map(chosen.flatMap(flowOf).map(check => [check.name, check]))
    for (const check of [...always, ...flows.values()]) {
      const { notices, milliseconds, output } = await carryOut(check, folder, settings)
      if (notices) throw new Error(`${check.name}: fails without a planted bug\n${output}`)
      most.set(check.name, TIMES * milliseconds + MORE_MS)
    }
    let survivors = 0
    for (const [place, mutant] of chosen.entries()) {
      await planted(folder, mutant, async () => {
        const noticed: string[] = []
        for (const check of [...(values.quick ? [nearby(mutant)] : []), ...always, ...flowOf(mutant)]) {
          if (values.quick && noticed.length > 0) break
          const { notices, isKilled } = await carryOut(check, folder, settings, most.get(check.name))
          if (notices) noticed.push(isKilled ? `${check.name} (did not end in time)` : check.name)
        }
        if (noticed.length === 0) survivors++
        const by = noticed.length === 0 ? 'SURVIVED' : `noticed by ${noticed.join(', ')}`
        console.log(`${place + 1} of ${chosen.length}: ${mutant.name}: ${by}`)
      })
    }
    console.log(`${chosen.length - survivors} of ${chosen.length} planted bugs were noticed`)
    return survivors === 0 ? 0 : 1
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

process.exitCode = await main()
