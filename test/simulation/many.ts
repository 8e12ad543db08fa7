/** The schedules of a test file: each in turn, until one fails. */
import { Coverage } from './coverage.ts'
import { runSchedule } from './run.ts'

/** The same in every run unless SIMULATION_SEED says otherwise: what fails in CI fails here. */
export const FIRST_SEED = Number(process.env.SIMULATION_SEED ?? 1)

/** Schedules of each of the two test files, which two workers share. */
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
