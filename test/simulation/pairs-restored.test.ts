/**
 * Commands must not break each other after indices were restored, also on another cluster. Each run has a part of the
 * kills; `pairs.long.test.ts` has more, `npm run simulate -- --pairs all` has all of them.
 */
import { expect, test } from 'vitest'
import { FIRST_SEED } from './many.ts'
import { runPairs } from './pairs/many.ts'
import { restoredPairs, runFrozen } from './pairs/restored.ts'
import { killedAndEnded } from './pairs/together.ts'

test('any two commands can run at the same time after indices were restored, also on another cluster', async () => {
  console.log(`seed ${FIRST_SEED}`)
  const { failure, outcomes } = await runPairs({ seed: FIRST_SEED, kills: 1, among: restoredPairs })
  expect(failure).toBeUndefined()
  const names = ['adopt', 'rewind', 'adopt-archive', 'upgrade-keys']
  expect(killedAndEnded(outcomes)).toEqual(expect.arrayContaining(names))
})

test.each([
  ['adopt', 'upgrade-keys'],
  ['rewind', 'drop'],
] as const)(
  '%s that waits at any of its requests takes back nothing that %s has changed meanwhile',
  async (...pair) => {
    const { failure, refused } = await runFrozen(pair, FIRST_SEED)
    expect(failure).toBeUndefined()
    // The runs met the moment in which the other command had changed a document that this one had read.
    expect(refused).toBeGreaterThan(0)
  },
)
