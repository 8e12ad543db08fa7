/** Runs all pairs of commands: without a kill, and with a kill at some or all requests of each command. */
import { createRandom } from '../../support/random.ts'
import type { Name } from './commands.ts'
import { pairs, runPair } from './run.ts'
import type { Kill } from './together.ts'

export type Asked = {
  readonly seed: number
  /** How many requests of each command a kill is tried at; all by default. */
  readonly kills?: number
  /** Two names, separated by a comma; all pairs by default. */
  readonly only?: string | undefined
  readonly onRun?: (runs: number) => void
}
export type Found = {
  readonly runs: number
  readonly failure: string | undefined
  /** How often each command ended in which way. */
  readonly outcomes: ReadonlyMap<string, number>
}

/** Runs pairs until one fails. */
export const runPairs = async ({ seed, kills = Number.POSITIVE_INFINITY, only, onRun }: Asked): Promise<Found> => {
  const outcomes = new Map<string, number>()
  let runs = 0
  const attempt = async (pair: readonly [Name, Name], kill: Kill) => {
    const verdict = await runPair(pair, seed, kill)
    runs++
    onRun?.(runs)
    for (const outcome of verdict.outcomes) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    if (verdict.failure === undefined) return { verdict, failure: undefined }
    const again = `npm run simulate -- --pairs ${pair.join()} --seed ${seed} --kill ${kill.who}:${kill.at}`
    return { verdict, failure: `${verdict.failure}\n${verdict.outcomes.join('; ')}\n${again}` }
  }
  for (const pair of pairs.filter(pair => only === undefined || pair.join() === only)) {
    const { verdict, failure } = await attempt(pair, { who: 'first', at: 0 })
    if (failure !== undefined) return { runs, failure, outcomes }
    for (const [place, who] of (['first', 'second'] as const).entries()) {
      for (const at of some(verdict.steps[place] ?? 0, kills, seed + place)) {
        const { failure } = await attempt(pair, { who, at })
        if (failure !== undefined) return { runs, failure, outcomes }
      }
    }
  }
  return { runs, failure: undefined, outcomes }
}

/** Returns `count` random numbers from 1 to `most`, or all of them. */
const some = (most: number, count: number, seed: number): number[] => {
  const random = createRandom(seed)
  const all = Array.from({ length: most }, (_, place) => place + 1)
  while (all.length > count) all.splice(random.below(all.length), 1)
  return all
}
