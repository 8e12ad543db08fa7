/** Runs all pairs of commands: without a kill, and with a kill at some or all requests of each command. */
import { createRandom } from '../../support/random.ts'
import { archivedPairs, runArchived } from './archived.ts'
import type { Name } from './commands.ts'
import { copiedPairs, runCopied } from './copied.ts'
import { restoredPairs, runRestored } from './restored.ts'
import { pairs, runPair } from './run.ts'
import type { Kill, PairVerdict } from './together.ts'

export type Asked = {
  readonly seed: number
  /** How many requests of each command a kill is tried at; all by default. */
  readonly kills?: number
  /** Two names, separated by a comma; all pairs by default. */
  readonly only?: string | undefined
  /** The pairs to choose from; all by default. */
  readonly among?: readonly AnyPair[]
  readonly onRun?: (runs: number) => void
}
export type Found = {
  readonly runs: number
  readonly failure: string | undefined
  /** How often each command ended in which way. */
  readonly outcomes: ReadonlyMap<string, number>
}

type AnyPair = readonly [string, string]

/** All pairs. Commands on a running projection; on archives, topics and keys; on restored indices; on a copy. */
export const allPairs: readonly AnyPair[] = [...pairs, ...archivedPairs, ...restoredPairs, ...copiedPairs]

/** Runs one pair. The second name may be `alone`. */
export const runAnyPair = (pair: AnyPair, seed: number, kill: Kill): Promise<PairVerdict> => {
  const isAmong = (scene: readonly AnyPair[]): boolean => scene.some(one => one.join() === pair.join())
  if (isAmong(archivedPairs)) return runArchived(pair, seed, kill)
  if (isAmong(copiedPairs)) return runCopied(pair, seed, kill)
  if (isAmong(restoredPairs)) return runRestored(pair, seed, kill)
  return runPair(pair as readonly [Name, Name], seed, kill)
}

/** Runs pairs until one fails. */
export const runPairs = async ({
  seed,
  kills = Number.POSITIVE_INFINITY,
  only,
  among = allPairs,
  onRun,
}: Asked): Promise<Found> => {
  const outcomes = new Map<string, number>()
  let runs = 0
  const attempt = async (pair: AnyPair, kill: Kill) => {
    const verdict = await runAnyPair(pair, seed, kill)
    runs++
    onRun?.(runs)
    for (const outcome of verdict.outcomes) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    if (verdict.failure === undefined) return { verdict, failure: undefined }
    const again = `npm run simulate -- --pairs ${pair.join()} --seed ${seed} --kill ${kill.who}:${kill.at}`
    return { verdict, failure: `${verdict.failure}\n${verdict.outcomes.join('; ')}\n${again}` }
  }
  for (const pair of among.filter(pair => only === undefined || pair.join() === only)) {
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
