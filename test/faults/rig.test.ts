/** The fault rig, with the duration and seed of `npm run faults`; by default a short run with a fixed seed. */
import { test } from 'vitest'
import { runRig } from './rig.ts'

const seconds = Number(process.env.FAULTS_SECONDS ?? 35)
const seed = Number(process.env.FAULTS_SEED ?? 4)

const say = (line: string): void => console.log(line)

test('after any sequence of faults an installation agrees with the model, and no client ever saw anything else', {
  // Beside the faults, the time of any test that starts processes.
  timeout: seconds * 1_000 + 900_000,
}, async t => {
  say(`seed ${seed}, ${seconds} s`)
  try {
    await runRig(t, { seed, seconds, say })
  } catch (error) {
    say(`repeat with: npm run faults -- --minutes ${(seconds / 60).toFixed(2)} --seed ${seed}`)
    throw error
  }
})
