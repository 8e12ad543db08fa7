/**
 * A copy that grows (`export --add`), killed at any request and any write of a file, alone or beside a second run.
 *
 * Promises: each part that has its name is whole; after the same commands were run again, the copy has the bytes of one
 * that was never killed.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRandom } from '../../support/random.ts'
import type { Told } from './commands.ts'
import { createLog } from './log.ts'
import { type Kill, type PairVerdict, runAgain, runTogether, unclear, verdictOf } from './together.ts'
import { createBases, World } from './world.ts'

type Name = 'add-first' | 'add-next' | 'alone'
export const copiedPairs: readonly (readonly [Name, Name])[] = [
  ['add-first', 'alone'],
  ['add-first', 'add-first'],
  ['add-next', 'alone'],
  ['add-next', 'add-next'],
]

const pairLog = createLog(createRandom(1))
let bases: ReturnType<typeof createBases> | undefined

export const runCopied = async (
  [name, other]: readonly [string, string],
  seed: number,
  kill: Kill,
): Promise<PairVerdict> => {
  const random = createRandom(seed)
  bases ??= createBases(pairLog)
  const { beside } = await bases
  const world = new World(pairLog, beside, random, random.pick([1, 5, 40]))
  // Streams read real files.
  world.clock.isWaitingForFiles = () => process.getActiveResourcesInfo().some(one => /^FS|^FILE/i.test(one))
  const folder = mkdtempSync(join(tmpdir(), 'pair-'))
  const [whole, copy] = [join(folder, 'whole'), join(folder, 'copy')]
  try {
    const [org = ''] = pairLog.organizations
    const told = (directory: string, asOf?: string): Told => ({ name: 'export', add: true, org, directory, asOf })
    world.startProjector()
    await world.untilCaughtUp()
    await carryOut(world, told(whole))
    world.publishAll()
    await world.untilCaughtUp()
    await carryOut(world, told(whole))
    const expected = filesIn(whole)
    const [first = '', next = ''] = ['part-000001', 'part-000002'].map(part => asOfPart(expected, part))
    if (name === 'add-next') await carryOut(world, told(copy, first))
    const one = { told: told(copy, name === 'add-next' ? next : first) }
    const second = other === 'alone' ? undefined : one
    const running = await runTogether(world, [one, second], random, kill)
    const failure =
      world.failure ??
      running.map(unclear).find(found => found !== undefined) ??
      differenceIn(namedIn(copy), expected) ??
      (await finish(world, [one.told, told(copy, next)], copy, expected))
    return verdictOf(failure, running)
  } finally {
    await world.release()
    rmSync(folder, { recursive: true })
  }
}

const carryOut = async (world: World, told: Told): Promise<void> => {
  const { code, said, error } = await world.alone(told)
  if (code !== 0) throw new Error(`the copy: ${said.join(' | ')} ${error}`)
}

const finish = async (
  world: World,
  told: readonly Told[],
  copy: string,
  expected: Files,
): Promise<string | undefined> => {
  const { running, failure } = await runAgain(
    world,
    told.map(one => ({ told: one })),
  )
  if (failure !== undefined) return `run again: ${failure}`
  const refused = running.find(({ code }) => code !== 0)
  if (refused) return `run again: ${refused.said.join(' | ')} ${refused.error}`
  const found = filesIn(copy)
  const left = Object.keys(found).find(file => expected[file] === undefined)
  const lost = Object.keys(expected).find(file => found[file] === undefined)
  if (left ?? lost) return `the copy has ${left}, and has not ${lost}`
  return differenceIn(found, expected)
}

type Files = Readonly<Record<string, string>>

const filesIn = (directory: string): Files =>
  Object.fromEntries(
    (existsSync(directory) ? readdirSync(directory, { recursive: true, encoding: 'utf8' }) : [])
      .filter(file => /\.\w+$/.test(file))
      .map(file => [file, readFileSync(join(directory, file), 'latin1')]),
  )

/** The files of parts that have their name. */
const namedIn = (copy: string): Files =>
  Object.fromEntries(Object.entries(filesIn(copy)).filter(([file]) => file.startsWith('part-')))

/** Each part that is there has all its files. */
const differenceIn = (found: Files, expected: Files): string | undefined => {
  const parts = new Set(Object.keys(found).map(file => file.split('/')[0]))
  const wanted = Object.keys(expected).filter(file => parts.has(file.split('/')[0]))
  const file = wanted.find(one => found[one] !== expected[one])
  return file === undefined ? undefined : `${file} differs from that of a copy that was never killed`
}

const asOfPart = (files: Files, part: string): string => {
  const { as_of }: { as_of?: string } = JSON.parse(files[`${part}/manifest.json`] ?? '{}')
  if (as_of === undefined) throw new Error(`the copy has no ${part}`)
  return as_of
}
