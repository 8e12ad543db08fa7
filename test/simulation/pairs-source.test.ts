/**
 * Commands on archives, topics and seal keys must not break each other, nor a killed one the next. Each run has a part
 * of the kills; `pairs.long.test.ts` has more, `npm run simulate -- --pairs all` has all of them, and other seeds.
 */
import { expect, test } from 'vitest'
import { FIRST_SEED } from './many.ts'
import { archivedPairs, runArchived } from './pairs/archived.ts'
import { runPairs } from './pairs/many.ts'
import { killedAndEnded } from './pairs/together.ts'

test('any two commands on an archive, on topics that are restored, or on keys can run at the same time', async () => {
  console.log(`seed ${FIRST_SEED}`)
  const { failure, outcomes } = await runPairs({ seed: FIRST_SEED, kills: 2, among: archivedPairs })
  expect(failure).toBeUndefined()
  const names = ['archive', 'restore', 'redact', 'replay-archive', 'erase', 'rotate']
  // Each command must be killed at least once and end at least once: otherwise the runs prove nothing.
  expect(killedAndEnded(outcomes)).toEqual(expect.arrayContaining(names))
})

test('two erasures of one person at once leave one whole receipt of each key, whichever is killed', async () => {
  const ends = new Set<string>()
  for (let seed = FIRST_SEED; seed < FIRST_SEED + 8; seed++) {
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
