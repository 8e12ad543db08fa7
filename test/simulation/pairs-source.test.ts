/**
 * Commands on archives, topics, seal keys and restored indices must not break each other, nor a killed one the next.
 * Each test run gives a part of the kills; `npm run simulate -- --pairs all` has all of them, and other seeds.
 */
import { expect, test } from 'vitest'
import { FIRST_SEED } from './many.ts'
import { archivedPairs, runArchived } from './pairs/archived.ts'
import { runPairs } from './pairs/many.ts'
import { restoredPairs, runRestored } from './pairs/restored.ts'

type Outcomes = ReadonlyMap<string, number>
/** Each command must be killed at least once and end at least once: otherwise the runs prove nothing. */
const expectKilledAndEnded = (outcomes: Outcomes, names: readonly string[]): void => {
  const ends = [...outcomes.keys()]
  for (const name of names) {
    const has = (how: string): boolean => ends.includes(`${name} ${how}`)
    expect([name, has('killed'), has('ended with 0')]).toEqual([name, true, true])
  }
}

test('any two commands on an archive, on topics that are restored, or on keys can run at the same time', async () => {
  console.log(`seed ${FIRST_SEED}`)
  const { failure, outcomes } = await runPairs({ seed: FIRST_SEED, kills: 3, among: archivedPairs })
  expect(failure).toBeUndefined()
  const names = ['archive', 'archive-verify', 'restore', 'redact', 'replay-archive', 'erase', 'rotate']
  expectKilledAndEnded(outcomes, names)
})

test('any two commands can run at the same time after indices were restored, also on another cluster', async () => {
  const { failure, outcomes } = await runPairs({ seed: FIRST_SEED, kills: 1, among: restoredPairs })
  expect(failure).toBeUndefined()
  expectKilledAndEnded(outcomes, ['adopt', 'rewind', 'adopt-archive', 'upgrade-keys'])
})

test.each([
  ['adopt', 'upgrade-keys'],
  ['adopt', 'drop'],
  ['rewind', 'adopt'],
  ['adopt-archive', 'drop'],
] as const)(
  '%s that waits at any of its requests takes back nothing that %s has changed meanwhile',
  async (...pair) => {
    const run = (at: number) => runRestored(pair, FIRST_SEED, { who: 'first', at, isFrozen: true })
    const [steps] = (await runRestored(pair, FIRST_SEED, { who: 'first', at: 0 })).steps
    const refused: string[] = []
    for (let at = 1; at <= steps; at++) {
      const { failure, outcomes } = await run(at)
      expect(failure, `request ${at}`).toBeUndefined()
      if (/changed by another command|somebody drops|was changed meanwhile/.test(outcomes.join()))
        refused.push(outcomes.join())
    }
    // The runs met the moment in which the other command had changed a document that this one had read.
    expect(refused.length).toBeGreaterThan(0)
  },
)

test('two erasures of one person at once leave one whole receipt of each key, whichever is killed', async () => {
  const ends = new Set<string>()
  for (let seed = FIRST_SEED; seed < FIRST_SEED + 20; seed++) {
    for (const at of [0, 3, 5, 7]) {
      const { failure, outcomes } = await runArchived(['erase', 'erase'], seed, { who: 'first', at })
      expect(failure, `seed ${seed}, kill ${at}`).toBeUndefined()
      for (const outcome of outcomes) ends.add(outcome)
    }
  }
  expect([...ends]).toContain('erase ended with 0')
})

test('a seed repeats the same run, files too', async () => {
  const run = () => runArchived(['archive', 'restore'], FIRST_SEED, { who: 'first', at: 5 })
  expect(await run()).toEqual(await run())
})
