/**
 * Runs two commands at the same time, kills one of them at a request, and returns a verdict. Then it finishes
 * everything by commands alone, like an operator who does not know what happened.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRandom, type Random } from '../../support/random.ts'
import { EVENTS } from '../history.ts'
import { type Name, names, type Running, type Told } from './commands.ts'
import { createLog } from './log.ts'
import { type Kill, type PairVerdict, runTogether, verdictOf } from './together.ts'
import { assertLiveIs, isExported, isTrue } from './truth.ts'
import { createBases, quietContentOf, World } from './world.ts'

const pairLog = createLog(createRandom(1))
let bases: ReturnType<typeof createBases> | undefined
const basesOnce = (): ReturnType<typeof createBases> => {
  bases ??= createBases(pairLog)
  return bases
}

/** All pairs of commands, also of a command with itself. */
export const pairs: readonly (readonly [Name, Name])[] = names.flatMap((a, at) =>
  names.slice(at).map(b => [a, b] as const),
)

export const runPair = async (pair: readonly [Name, Name], seed: number, kill: Kill): Promise<PairVerdict> => {
  const random = createRandom(seed)
  // Either command may start first; mostly the one that creates what the other one works on.
  const turns = pair.includes('rebuild') || pair.join() === 'drop,replay'
  const isTurned = random.chance(turns ? 0.1 : 0.5) !== (pair[1] === 'replay' && turns)
  const [a, b] = isTurned ? ([pair[1], pair[0]] as const) : pair
  const { beside, swapped } = await basesOnce()
  const isSwapped = [a, b].includes('rollback')
  const world = new World(pairLog, isSwapped ? swapped : beside, random, random.pick([1, 5, 40]))
  const directory = mkdtempSync(join(tmpdir(), 'pair-'))
  if ([a, b].includes('export')) {
    world.clock.isWaitingForFiles = () => process.getActiveResourcesInfo().some(name => /^FS|^FILE/i.test(name))
  }
  try {
    return await carryOut(world, [a, b], random, kill, isSwapped, directory)
  } finally {
    await world.release()
    rmSync(directory, { recursive: true })
  }
}

const carryOut = async (
  world: World,
  [a, b]: readonly [Name, Name],
  random: Random,
  kill: Kill,
  isSwapped: boolean,
  directory: string,
): Promise<PairVerdict> => {
  const { clock } = world
  const [first, second] = [tell(a, b, random, isSwapped, directory), tell(b, a, random, isSwapped, directory)]
  world.startProjector()
  await clock.runUntil(() => world.failure !== undefined, random.next() * random.pick([10, 5_000]))
  publishRest(world, random)
  const running = await runTogether(world, [{ told: first }, { told: second }], random, kill)
  world.publishAll()
  await world.untilCaughtUp()
  const quiet = await quietContentOf(world)
  const wrong = (): string | undefined =>
    world.failure ??
    assertLiveIs(world, quiet) ??
    running
      .map(one =>
        isTrue(
          one,
          running.filter(other => other !== one),
          world,
        ),
      )
      .find(found => found !== undefined) ??
    isExported(directory)
  const failure = wrong() ?? (await bringToEnd(world, quiet))
  return verdictOf(failure, running)
}

/** Lists all generations and sandboxes, drops all but the live one, and checks that a new projector then continues. */
export const bringToEnd = async (world: World, quiet: string): Promise<string | undefined> => {
  const failed = ({ told, error, said }: Running): string =>
    `${JSON.stringify(told)} afterwards: ${error instanceof Error ? error.stack : said.join(' | ')}`
  for (const sandboxes of [false, true]) {
    const listing = await world.alone({ name: sandboxes ? 'list sandboxes' : 'list' })
    if (listing.code !== 0) return failed(listing)
    // The newest first: a generation that is being created may follow another one.
    const listed = listing.out.map(line => JSON.parse(line) as Listed).sort((a, b) => (nameOf(a) < nameOf(b) ? 1 : -1))
    for (const { generation, sandbox, roles } of listed) {
      if (roles?.includes('live')) continue
      const name = generation ?? sandbox?.slice('sandbox:'.length) ?? ''
      const dropping = await world.alone({ name: sandboxes ? 'drop sandbox' : 'drop', generation: name })
      if (dropping.code !== 0) return failed(dropping)
    }
  }
  const live = world.live()?.generation ?? ''
  const others = [...world.engine.indices.keys()].filter(
    name => /-(?:g|s)\d+-/.test(name) && !name.includes(`-${live}-`),
  )
  if (others.length > 0) return `left over: ${others.join(', ')}`
  world.killProjectors()
  world.startProjector()
  await world.clock.runUntil(() => world.failure !== undefined, 20_000)
  await world.untilCaughtUp()
  return world.failure ?? assertLiveIs(world, quiet)
}

const nameOf = ({ generation = '', sandbox = '' }: Listed): string => generation + sandbox

type Listed = { readonly generation?: string; readonly sandbox?: string; readonly roles?: readonly string[] }

/** Chooses the options of a command: mostly it works on the same generation as the other one. */
const tell = (name: Name, other: Name, random: Random, isSwapped: boolean, directory: string): Told => {
  const [live, spare] = isSwapped ? ['g2', 'g1'] : ['g1', 'g2']
  const made = 'g3'
  // After a swap or rollback the generation that is live now can be dropped.
  const isMoving = name === 'drop' && (other === 'swap' || other === 'rollback')
  const either = other === 'rebuild' && random.chance(0.7) ? made : random.chance(isMoving ? 0.5 : 0.9) ? spare : live
  switch (name) {
    case 'verify':
      return { name, a: live, b: other === 'rebuild' ? random.pick([spare, made]) : spare }
    case 'swap':
      return { name, generation: either, ...(random.chance(0.2) && { force: 'simulated' }) }
    case 'drop':
      if (other === 'replay') return { name: 'drop sandbox', generation: 's1' }
      return { name, generation: either }
    case 'replay':
      return { name, sandbox: 's1' }
    case 'export':
      return { name, org: random.pick(pairLog.organizations), directory: join(directory, 'export') }
    case 'publish-again':
      return { name, positions: pairLog.parked }
    case 'rebuild':
    case 'rollback':
      return { name }
  }
}

/** Publishes the rest of the log, record by record, while the commands run. */
const publishRest = (world: World, random: Random): void => {
  const span = random.pick([100, 5_000, 20_000])
  for (const partition of world.broker.topic(EVENTS).partitions) {
    for (let end = partition.end + 1; end <= partition.entries.length; end++) {
      world.clock.after(random.next() * span, () => {
        partition.end = Math.max(partition.end, end)
      })
    }
  }
}
