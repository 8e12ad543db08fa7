/** Half of the schedules of `npm test`, and what makes the other half and every other seed worth something. */
import { expect, test } from 'vitest'
import { History } from './history.ts'
import { FIRST_SEED, runMany, SCHEDULES } from './many.ts'
import { runSchedule } from './run.ts'

test('a seed makes the same history and the same run again, event by event', async () => {
  const seed = FIRST_SEED + 3
  expect(new History(seed).log).toEqual(new History(seed).log)
  const once = await runSchedule(seed)
  // Another one in between, so that nothing is left over from before.
  await runSchedule(seed + 1_000)
  expect((await runSchedule(seed)).trace).toBe(once.trace)
})

test('every promise is kept in every schedule, and every kind of fault occurs', async () => {
  console.log(`seeds ${FIRST_SEED} to ${FIRST_SEED + SCHEDULES - 1}`)
  const { failure, coverage } = await runMany(FIRST_SEED, SCHEDULES)
  expect(failure).toBeUndefined()
  console.log(coverage.toString())
  expect(coverage.missing()).toEqual([])
})
