/** Keys with every set of permissions. `run.ts` sends the probes, `model.ts` has the answers. */
import { expect, test } from 'vitest'
import { seedOfRun } from '../../support/random.ts'
import { sendProbes } from './run.ts'

const PROBES = 20_000

test(`${PROBES} requests with keys of every set of permissions are answered as the contract says`, async () => {
  const seed = seedOfRun()
  console.log(`seed ${seed} (FLOW_SEED)`)
  const { wrong, statuses } = await sendProbes(seed, PROBES)
  expect(wrong).toEqual([])
  expect([...statuses.keys()].toSorted()).toEqual([200, 400, 401, 403, 404, 405])
})
