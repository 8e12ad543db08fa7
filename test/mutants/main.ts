/**
 * `npm run mutants [-- --only TEXT] [--seeds N]`: plants one bug after the other in a copy of the program and reports which
 * check notices it: the unit tests, the simulation, and for some a test on real services. Exit code 1 when one survives.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { startServices } from '../../services/services.ts'
import { type Mutant, mutants } from './mutants.ts'

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
const unit: Check = { name: 'unit tests', args: vitest('unit', 'test/projector', 'test/api') }
const simulation = (seeds: string): Check => ({
  name: 'simulation',
  args: ['test/simulation/main.ts', '--seeds', seeds],
})
const flowOf = ({ flow }: Mutant): Check[] =>
  flow === undefined ? [] : [{ name: flow.replace(/^test\/|\.test\.ts$/g, ''), args: vitest('flow', flow) }]

/** A copy of everything that git knows of, with the packages of this one. */
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

/** Whether a check fails. One that does not end is ended, and has noticed. */
const notices = async ({ args }: Check, folder: string, settings: Settings): Promise<boolean> => {
  const child = spawn(process.execPath, ['--disable-warning=TimeoutNegativeWarning', ...args], {
    cwd: folder,
    env: { ...process.env, ...settings },
    stdio: 'ignore',
    timeout: CHECK_MS,
    killSignal: 'SIGKILL',
  })
  const [code] = await once(child, 'exit')
  return code !== 0
}

/** Milliseconds a check may take. */
const CHECK_MS = 8 * 60_000

const planted = async (folder: string, { file, find, replace }: Mutant, task: () => Promise<void>): Promise<void> => {
  const path = join(folder, file)
  const text = await readFile(path, 'utf8')
  if (text.split(find).length !== 2) throw new Error(`${file}: what is to be replaced stands there not exactly once`)
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
    options: { only: { type: 'string', default: '' }, seeds: { type: 'string', default: '300' } },
  })
  const chosen = mutants.filter(({ name }) => name.includes(values.only))
  await using services = await startServices({ say: console.log, environment: process.env })
  const settings = { KAFKA_BROKERS: services.kafkaBrokers, ELASTICSEARCH_URL: services.elasticsearchUrl }
  const folder = await copyProgram()
  try {
    const always = [unit, simulation(values.seeds)]
    for (const check of always) {
      if (await notices(check, folder, settings)) throw new Error(`${check.name}: fails without any planted bug`)
    }
    let survivors = 0
    for (const [place, mutant] of chosen.entries()) {
      await planted(folder, mutant, async () => {
        const noticed: string[] = []
        for (const check of [...always, ...flowOf(mutant)]) {
          if (await notices(check, folder, settings)) noticed.push(check.name)
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
