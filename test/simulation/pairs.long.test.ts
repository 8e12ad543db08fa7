/** More kills, and another seed, of the pairs of commands on archives, topics, keys and restored indices. */
import { expect, test } from 'vitest'
import { FIRST_SEED } from './many.ts'
import { archivedPairs } from './pairs/archived.ts'
import { runPairs } from './pairs/many.ts'
import { restoredPairs } from './pairs/restored.ts'

const seed = FIRST_SEED + 1

test('commands on archives, topics and keys can be killed at any of 8 requests while another one runs', async () => {
  console.log(`seed ${seed}`)
  expect((await runPairs({ seed, kills: 8, among: archivedPairs })).failure).toBeUndefined()
})

test('commands on restored indices can be killed at any of 4 requests while another one runs', async () => {
  expect((await runPairs({ seed, kills: 4, among: restoredPairs })).failure).toBeUndefined()
})
