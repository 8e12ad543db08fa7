/** `npm run simulate -- --seeds N [--seed S]`: runs schedules until one fails. A seed alone is that one schedule. */
import { parseArgs } from 'node:util'
import { progressBar } from '../../services/progress-bar.ts'
import { Coverage } from './coverage.ts'
import { runSchedule } from './run.ts'

const { values } = parseArgs({ options: { seeds: { type: 'string' }, seed: { type: 'string' } } })
const first = Number(values.seed ?? 1)
const count = Number(values.seeds ?? (values.seed === undefined ? 300 : 1))
if (!Number.isSafeInteger(first) || !Number.isSafeInteger(count) || count < 1) {
  process.stderr.write('usage: npm run simulate -- [--seeds how many] [--seed the first]\n')
  process.exit(2)
}

const say = (line: string): void => void process.stdout.write(`${line}\n`)
const broke = (error: unknown, seed: number): never => {
  say(`seed ${seed}: ${error instanceof Error ? error.stack : String(error)}`)
  say(`npm run simulate -- --seed ${seed}`)
  process.exit(1)
}

const progress = progressBar(process.stdout, say)
const coverage = new Coverage()
const begun = performance.now()
let seed = first
process.on('unhandledRejection', error => broke(error, seed))
for (; seed < first + count; seed++) {
  const verdict = await runSchedule(seed).catch(error => broke(error, seed))
  coverage.add(verdict.coverage)
  progress({ what: 'schedules', done: seed + 1 - first, total: count })
  if (verdict.failure === undefined) continue
  say(verdict.failure)
  say(`npm run simulate -- --seed ${seed}`)
  process.exit(1)
}
say(coverage.toString())
say(
  `${count} schedules, seeds ${first} to ${first + count - 1}, ${((performance.now() - begun) / 1000).toFixed(1)} s: every promise was kept`,
)
