/**
 * `npm run mutants [-- --quick] [--only TEXT ...] [--from N] [--seeds N]` plants bugs in copies of the program, one in
 * each copy at a time. It reports which checks notice each bug: the unit tests, the simulation, and for some bugs a
 * test on real services. Exit code 1 when a bug survives. `--quick` begins with the test that noticed the bug in the
 * last quick run, then runs the unit tests that import the changed file, and stops at the first check that notices it.
 */
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { runOnExit } from '../../services/cleanup-on-exit.ts'
import { startServices } from '../../services/services.ts'
import { carryOut, type Settings } from './carry-out.ts'
import { type Check, failedFile, flowOf, nearby, oneFile, simulation, unit } from './checks.ts'
import type { Mutant } from './mutant.ts'
import { mutants } from './mutants.ts'
import { readNoticedBy, storeNoticedBy } from './noticed-by.ts'
import { plant, readPlaces } from './places.ts'

const root = join(import.meta.dirname, '..', '..')
const run = promisify(execFile)

type Planted = ReturnType<typeof plant>

/** Copies of the program: most checks of one bug keep one core busy. */
const COPIES = 2
/** Milliseconds of a check without a planted bug. */
const FIRST_MS = 8 * 60_000
/** With a planted bug a check may take `TIMES` times as long, plus `MORE_MS`. */
const TIMES = 3
const MORE_MS = 60_000

/** Copies all files that git does not ignore, and links the packages. The folder goes when this process ends. */
const copyProgram = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'commission-mutants-'))
  runOnExit('rm -rf "$0"', folder)
  const { stdout } = await run('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: root })
  for (const file of stdout.split('\n').filter(name => name !== '')) {
    await mkdir(dirname(join(folder, file)), { recursive: true })
    await cp(join(root, file), join(folder, file))
  }
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

const planted = async (folder: string, { file, before, after }: Planted, task: () => Promise<void>): Promise<void> => {
  const path = join(folder, file)
  await writeFile(path, after)
  try {
    await task()
  } finally {
    await writeFile(path, before)
  }
}

/**
 * Runs each check once in a copy without a planted bug, before it may notice one. Returns the milliseconds that it may
 * take with a bug. Fails if it fails without one.
 */
const createLimits = (clean: string, settings: Settings) => {
  const limits = new Map<string, Promise<number>>()
  const limitOf = async (check: Check): Promise<number> => {
    const { notices, milliseconds, output } = await carryOut(check, clean, settings, FIRST_MS)
    if (notices) throw new Error(`${check.name}: fails without a planted bug\n${output}`)
    return TIMES * milliseconds + MORE_MS
  }
  return (check: Check): Promise<number> => {
    const limit = limits.get(check.name) ?? limitOf(check)
    limits.set(check.name, limit)
    return limit
  }
}

const readOptions = () => {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true, default: [''] },
      from: { type: 'string', default: '1' },
      seeds: { type: 'string', default: '300' },
    },
  })
  return values
}

const main = async (): Promise<number> => {
  const { quick, only, from, seeds } = readOptions()
  const chosen = mutants.filter(({ name }) => only.some(text => name.includes(text))).slice(Number(from) - 1)
  const noticedBy = readNoticedBy()
  await using services = await startServices({ say: console.log, environment: process.env })
  const settings = { KAFKA_BROKERS: services.kafkaBrokers, ELASTICSEARCH_URL: services.elasticsearchUrl }
  const [clean, ...folders] = await Promise.all([copyProgram(), ...Array.from({ length: COPIES }, copyProgram)])
  const always = [unit, simulation(seeds)]
  const limitOf = createLimits(clean, settings)

  const places = readPlaces(clean)
  const checksOf = (mutant: Mutant, file: string): Check[] => {
    if (!quick) return [...always, ...flowOf(mutant)]
    const before = noticedBy.get(mutant.name)
    return [...(before === undefined ? [] : [oneFile(before)]), nearby(file), ...flowOf(mutant), ...always.toReversed()]
  }
  const tryOne = async (folder: string, mutant: Mutant, file: string): Promise<string[]> => {
    const noticed: string[] = []
    for (const check of checksOf(mutant, file)) {
      if (quick && noticed.length > 0) break
      const most = await limitOf(check.isUnit ? unit : check)
      const { notices, isKilled, output } = await carryOut(check, folder, settings, most)
      if (!notices) continue
      noticed.push(isKilled ? `${check.name} (did not end in time)` : check.name)
      const failed = isKilled ? undefined : failedFile(output)
      if (quick && failed !== undefined) noticedBy.set(mutant.name, failed)
    }
    return noticed
  }

  const names = mutants.map(({ name }) => name)
  const waiting = chosen.entries()
  const survivors: string[] = []
  const tryAll = async (folder: string): Promise<void> => {
    for (const [place, mutant] of waiting) {
      const bug = plant(mutant, places, clean)
      await planted(folder, bug, async () => {
        const noticed = await tryOne(folder, mutant, bug.file)
        if (noticed.length === 0) survivors.push(mutant.name)
        const by = noticed.length === 0 ? 'SURVIVED' : `noticed by ${noticed.join(', ')}`
        console.log(`${place + 1} of ${chosen.length}: ${mutant.name}: ${by}`)
      })
      if (quick) storeNoticedBy(noticedBy, names)
    }
  }
  await Promise.all(folders.map(tryAll))
  console.log(`${chosen.length - survivors.length} of ${chosen.length} planted bugs were noticed`)
  for (const name of survivors) console.log(`survived: ${name}`)
  return survivors.length === 0 ? 0 : 1
}

process.exitCode = await main()
