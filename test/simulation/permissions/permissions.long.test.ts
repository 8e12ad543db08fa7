/** More probes than `permissions.test.ts`. */
import { expect, test } from 'vitest'
import { seedOfRun } from '../../support/random.ts'
import { sendProbes } from './run.ts'

const PROBES = 100_000

test(`${PROBES} requests with keys of every set of permissions are answered as the contract says`, async () => {
  const seed = seedOfRun()
  console.log(`seed ${seed} (FLOW_SEED)`)
  const { wrong, statuses } = await sendProbes(seed, PROBES)
  expect(wrong).toEqual([])
  console.log(`answers by status: ${JSON.stringify(Object.fromEntries(statuses))}`)
})
