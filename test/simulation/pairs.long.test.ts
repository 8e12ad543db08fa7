/** More kills, and another seed, of the pairs of commands on archives, topics, keys and restored indices. */
import { expect, test } from 'vitest'
import { FIRST_SEED } from './many.ts'
import { archivedPairs } from './pairs/archived.ts'
import { runPairs } from './pairs/many.ts'
import { restoredPairs, runFrozen } from './pairs/restored.ts'

const seed = FIRST_SEED + 1

test('commands on archives, topics and keys can be killed at any of 8 requests while another one runs', async () => {
  console.log(`seed ${seed}`)
  expect((await runPairs({ seed, kills: 8, among: archivedPairs })).failure).toBeUndefined()
})

test('commands on restored indices can be killed at any of 4 requests while another one runs', async () => {
  expect((await runPairs({ seed, kills: 4, among: restoredPairs })).failure).toBeUndefined()
})

test.each([
  ['adopt', 'drop'],
  ['adopt', 'swap'],
  ['rewind', 'adopt'],
  ['rewind', 'upgrade-keys'],
  ['adopt-archive', 'upgrade-keys'],
  ['adopt-archive', 'drop'],
] as const)(
  '%s that waits at any of its requests takes back nothing that %s has changed meanwhile',
  async (...pair) => {
    expect((await runFrozen(pair, seed)).failure).toBeUndefined()
  },
)
