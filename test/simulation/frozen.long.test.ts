/** A command that waits at one of its requests, until another one is over. */
import { expect, test } from 'vitest'
import { FIRST_SEED } from './many.ts'
import { runFrozen } from './pairs/restored.ts'

const seed = FIRST_SEED + 1

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
    console.log(`seed ${seed}`)
    expect((await runFrozen(pair, seed)).failure).toBeUndefined()
  },
)
