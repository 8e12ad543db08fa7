/** `npm run faults` runs the fault rig for a given time, with a new seed unless one is given. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const help = `npm run faults [-- --minutes M --seed S]
  --minutes  how long faults are caused (10)
  --seed     repeats a schedule; a new seed by default`

const main = (): void => {
  const { values } = parseArgs({
    options: { minutes: { type: 'string' }, seed: { type: 'string' }, help: { type: 'boolean' } },
  })
  if (values.help) {
    console.log(help)
    return
  }
  const minutes = Number(values.minutes ?? 10)
  const seed = Number(values.seed ?? Date.now() % 1_000_000_000)
  if (!(minutes > 0) || !Number.isInteger(seed)) throw new Error(help)

  const root = join(import.meta.dirname, '..', '..')
  const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs')
  // The file must come before `--project`, which would take it as its value: then all named faults would run too.
  const asked = ['run', 'test/faults/rig.test.ts', '--project', 'faults', '--disable-console-intercept']
  const child = spawn(process.execPath, [vitest, ...asked], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, FAULTS_SECONDS: String(minutes * 60), FAULTS_SEED: String(seed) },
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  child.on('exit', code => {
    process.exitCode = code ?? 1
  })
}

try {
  main()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
