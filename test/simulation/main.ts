/**
 * `npm run simulate -- --seeds N [--seed S]` runs schedules until one fails. `--seed` alone runs that schedule.
 * `--pairs all` runs all pairs of commands instead, and kills each command at each of its requests; `--pairs
 * rebuild,drop --kill first:7` is one of these runs, and `archive,alone` a command alone. With `--attacks` hostile
 * clients attack API processes instead. With `--logs` topics are lost, made anew by a stranger, cut and restored.
 */
import { parseArgs } from 'node:util'
import { progressBar } from '../../services/progress-bar.ts'
import { attacks, Coverage } from './coverage.ts'
import { runManyLogs } from './foreign-logs/many.ts'
import { runAttack } from './hostile/run.ts'
import { repeatAttackWith, repeatWith } from './many.ts'
import { runAnyPair, runPairs } from './pairs/many.ts'
import { runSchedule } from './run.ts'

const text = { type: 'string' } as const
const { values } = parseArgs({
  options: {
    seeds: text,
    seed: text,
    pairs: text,
    kill: text,
    attacks: { type: 'boolean' },
    logs: { type: 'boolean' },
  },
})
const first = Number(values.seed ?? 1)
const count = Number(values.seeds ?? (values.seed === undefined ? 300 : 1))
if (!Number.isSafeInteger(first) || !Number.isSafeInteger(count) || count < 1) {
  process.stderr.write(
    'usage: npm run simulate -- [--seeds COUNT] [--seed FIRST] [--attacks | --logs | --pairs all | --pairs one,other [--kill first:N]]\n',
  )
  process.exit(2)
}

const say = (line: string): void => void process.stdout.write(`${line}\n`)
const broke = (error: unknown, seed: number): never => {
  say(`seed ${seed}: ${error instanceof Error ? error.stack : String(error)}`)
  say(repeat(seed))
  process.exit(1)
}

const progress = progressBar(process.stdout, say)
const run = values.attacks ? runAttack : runSchedule
const repeat = values.attacks ? repeatAttackWith : repeatWith
const coverage = new Coverage(values.attacks ? attacks : undefined)
const begun = performance.now()
let seed = first
process.on('unhandledRejection', error => broke(error, seed))

const simulatePairs = async (pairs: string): Promise<void> => {
  for (; seed < first + (values.seeds === undefined ? 1 : count); seed++) {
    const one = values.kill?.split(':') ?? []
    const kill = { who: one[0] === 'second' ? 'second' : 'first', at: Number(one[1]) } as const
    const only = pairs === 'all' ? undefined : pairs
    const { failure, ...found } =
      one.length > 0
        ? await runAnyPair(pairs.split(',') as [string, string], seed, kill)
        : await runPairs({ seed, only, onRun: runs => draw(`seed ${seed}: ${runs} runs`) })
    if (failure !== undefined) return broke(failure, seed)
    say(
      `seed ${seed}: all promises were kept${'runs' in found ? ` in ${found.runs} runs` : `: ${found.outcomes.join('; ')}`}`,
    )
  }
}
const draw = (line: string): void => {
  if (process.stdout.isTTY) process.stdout.write(`\r\u001b[K${line}`)
}
if (values.logs) {
  const onRun = (done: number): void => progress({ what: 'logs', done, total: count })
  const { failure, outcomes, stops, answers } = await runManyLogs(first, count, undefined, onRun)
  if (failure !== undefined) {
    say(failure)
    process.exit(1)
  }
  const counted = (of: ReadonlyMap<string, number>): string =>
    [...of].map(([what, often]) => `${often} ${what}`).join(', ')
  say(`logs: ${counted(outcomes)}; projectors stopped: ${counted(stops)}; ${answers} answers compared`)
  process.exit(0)
}
if (values.pairs !== undefined) {
  await simulatePairs(values.pairs)
  process.exit(0)
}
for (; seed < first + count; seed++) {
  const verdict = await run(seed).catch(error => broke(error, seed))
  coverage.add(verdict.coverage)
  progress({ what: 'schedules', done: seed + 1 - first, total: count })
  if (verdict.failure === undefined) continue
  say(verdict.failure)
  say(repeat(seed))
  process.exit(1)
}
say(coverage.toString())
say(
  `${count} schedules, seeds ${first} to ${first + count - 1}, ${((performance.now() - begun) / 1000).toFixed(1)} s: every promise was kept`,
)
