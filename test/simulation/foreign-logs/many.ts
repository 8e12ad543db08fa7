/** Runs plans one after the other until one fails: many seeds, or one plan with the loss at each request in turn. */
import type { Plan } from './plan.ts'
import { type Outcome, runForeignLog } from './run.ts'

export const repeatLogWith = (seed: number): string => `npm run simulate -- --logs --seed ${seed}`

export type ManyLogs = {
  /** The first failure, with what happened before it and the command that repeats it. */
  readonly failure: string | undefined
  readonly outcomes: ReadonlyMap<Outcome, number>
  /** How often projectors stopped with each code. */
  readonly stops: ReadonlyMap<string, number>
  /** Answers of the API that were compared with the log. */
  readonly answers: number
}

export const runManyLogs = async (
  first: number,
  count: number,
  only?: Partial<Plan>,
  onRun: (done: number) => void = () => undefined,
): Promise<ManyLogs> => {
  const outcomes = new Map<Outcome, number>()
  const stops = new Map<string, number>()
  let answers = 0
  for (let seed = first; seed < first + count; seed++) {
    const verdict = await runForeignLog(seed, only).catch((error: unknown) => {
      throw new Error(repeatLogWith(seed), { cause: error })
    })
    answers += verdict.answers
    if (verdict.outcome) outcomes.set(verdict.outcome, (outcomes.get(verdict.outcome) ?? 0) + 1)
    for (const code of verdict.stops) stops.set(code, (stops.get(code) ?? 0) + 1)
    onRun(seed + 1 - first)
    if (verdict.failure === undefined) continue
    const failure = [verdict.failure, ...verdict.trace, repeatLogWith(seed)].join('\n')
    return { failure, outcomes, stops, answers }
  }
  return { failure: undefined, outcomes, stops, answers }
}

/**
 * Runs one plan with the loss at each request of the projectors in turn, until all that was published is projected.
 * @returns the first failure, and the number of requests
 */
export const runEveryRequest = async (
  seed: number,
  only: Partial<Plan>,
): Promise<{ readonly failure: string | undefined; readonly requests: number }> => {
  for (let request = 0; ; request++) {
    const { failure, trace, wasIdle } = await runForeignLog(seed, { ...only, request })
    if (failure !== undefined)
      return { failure: [`request ${request}: ${failure}`, ...trace].join('\n'), requests: request }
    if (wasIdle) return { failure: undefined, requests: request }
  }
}
