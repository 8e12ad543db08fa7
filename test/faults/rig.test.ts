/** The fault rig, for as long and with the seed that `npm run faults` says; a short run with a fixed seed otherwise. */
import { test } from 'vitest'
import { runRig } from './rig.ts'

const seconds = Number(process.env.FAULTS_SECONDS ?? 35)
const seed = Number(process.env.FAULTS_SEED ?? 4)

const say = (line: string): void => console.log(line)

test('whatever is done to an installation, in the end it has what the model has, and nobody was shown anything else', {
  timeout: seconds * 1_000 + 240_000,
}, async t => {
  say(`seed ${seed}, ${seconds} s`)
  try {
    await runRig(t, { seed, seconds, say })
  } catch (error) {
    say(`again: npm run faults -- --minutes ${(seconds / 60).toFixed(2)} --seed ${seed}`)
    throw error
  }
})
