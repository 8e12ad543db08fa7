/**
 * Commands must not break each other. Each test run gives two commands at the same time, with a projector and new
 * records, and kills one of them. Afterwards the projectors run, live generations are complete, the outputs of the
 * commands were true, and every unfinished generation can be dropped. For all kills and other seeds: `npm run simulate
 * -- --pairs all`.
 */
import { expect, test } from 'vitest'
import { createRandom } from '../support/random.ts'
import { FIRST_SEED } from './many.ts'
import { names } from './pairs/commands.ts'
import { createLog } from './pairs/log.ts'
import { runPairs } from './pairs/many.ts'
import { pairs, runPair } from './pairs/run.ts'
import { createBases, World } from './pairs/world.ts'
import { Index } from './stored.ts'

test('any two commands can run at the same time, and either can be killed', async () => {
  console.log(`seed ${FIRST_SEED}`)
  const { failure, runs, outcomes } = await runPairs({ seed: FIRST_SEED, kills: 1, among: pairs })
  expect(failure).toBeUndefined()
  // An export that another export blocks makes no request: it cannot be killed at one.
  expect(runs).toBeGreaterThanOrEqual(3 * pairs.length - 2)
  const ends = [...outcomes.keys()]
  for (const name of names) {
    const its = ends.filter(end => end.startsWith(`${name} `) || end.startsWith(`${name} sandbox`))
    // Each command must be killed at least once and end at least once: otherwise the runs prove nothing.
    expect([name, its.some(end => end.includes('killed')), its.some(end => end.endsWith('ended with 0'))]).toEqual([
      name,
      true,
      true,
    ])
  }
})

test('a rebuild whose generation is dropped meanwhile ends with an error that says so, and restores nothing', async () => {
  const outcomes: string[] = []
  for (let seed = FIRST_SEED; seed < FIRST_SEED + 30; seed++) {
    const verdict = await runPair(['rebuild', 'drop'], seed, { who: 'first', at: 0 })
    expect(verdict.failure, `seed ${seed}`).toBeUndefined()
    const [rebuilt = '', dropped = ''] = verdict.outcomes
    if (!rebuilt.includes('g3 was dropped meanwhile')) continue
    expect(dropped).toBe('drop ended with 0')
    outcomes.push(rebuilt)
    if (outcomes.length === 3) return
  }
  expect(outcomes).toHaveLength(3)
})

test('projectors that were frozen while their generation was replaced and dropped continue with the live one', async () => {
  const log = createLog(createRandom(FIRST_SEED))
  const { beside } = await createBases(log)
  let sparesFailed = 0
  let swaps = 0
  for (let seed = FIRST_SEED; seed < FIRST_SEED + 12; seed++) {
    const world = new World(log, beside, createRandom(seed), 5)
    world.startProjector()
    await world.clock.runUntil(() => false, 4_000)
    world.publishAll()
    await world.clock.runUntil(() => false, 15 * (seed - FIRST_SEED + 1))
    world.freezeProjectors(60_000)
    // A generation that was behind when the projectors froze cannot become live before they go on.
    if ((await world.alone({ name: 'swap', generation: 'g2' })).code !== 0) continue
    swaps++
    expect((await world.alone({ name: 'drop', generation: 'g1' })).code).toBe(0)
    await world.clock.runUntil(() => false, 60_000)
    await world.untilCaughtUp()
    expect(world.failure, `seed ${seed}`).toBeUndefined()
    sparesFailed += world.sparesFailed
  }
  expect(swaps).toBeGreaterThanOrEqual(6)
  // The projectors did write to the dropped generation.
  expect(sparesFailed).toBeGreaterThan(0)
})

test('a rebuild never reuses a generation name of which an index is left', async () => {
  const log = createLog(createRandom(FIRST_SEED))
  const { beside } = await createBases(log)
  const [left] = [...beside.values()].filter(({ name }) => name.includes('-g2-')).map(({ definition }) => definition)
  const world = new World(log, beside, createRandom(FIRST_SEED))
  world.engine.indices.set('simulated-g7-payouts', new Index('simulated-g7-payouts', left ?? expect.fail()))
  world.startProjector()
  const { out } = await world.alone({ name: 'rebuild' })
  expect(JSON.parse(out[0] ?? '')).toEqual({ generation: 'g8', live: 'g1' })
})

test('a seed repeats the same run', async () => {
  const run = () => runPair(['rebuild', 'drop'], FIRST_SEED, { who: 'first', at: 20 })
  expect(await run()).toEqual(await run())
})
