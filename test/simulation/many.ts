/** Runs the schedules of a test file in turn, until one fails. */
import { Coverage } from './coverage.ts'
import { runSchedule } from './run.ts'

/** Constant unless SIMULATION_SEED sets it: a failure in CI repeats here. */
export const FIRST_SEED = Number(process.env.SIMULATION_SEED ?? 1)

/** Schedules in each of the two test files, which run in two workers. */
export const SCHEDULES = 1_000

export const repeatWith = (seed: number): string => `npm run simulate -- --seed ${seed}`

export const repeatAttackWith = (seed: number): string => `npm run simulate -- --attacks --seed ${seed}`

export const runMany = async (
  first: number,
  count: number,
): Promise<{ readonly failure: string | undefined; readonly coverage: Coverage }> => {
  const coverage = new Coverage()
  for (let seed = first; seed < first + count; seed++) {
    const verdict = await runSchedule(seed).catch((error: unknown) => {
      throw new Error(repeatWith(seed), { cause: error })
    })
    coverage.add(verdict.coverage)
    if (verdict.failure !== undefined) return { failure: `${verdict.failure}\n${repeatWith(seed)}`, coverage }
  }
  return { failure: undefined, coverage }
}
