/** One half of the schedules of `npm test`, and the proof that a seed repeats a run exactly. */
import { expect, test } from 'vitest'
import { History } from './history.ts'
import { FIRST_SEED, runMany, SCHEDULES } from './many.ts'
import { runSchedule } from './run.ts'

test('a seed repeats the same history and the same run, event by event', async () => {
  const seed = FIRST_SEED + 3
  expect(new History(seed).log).toEqual(new History(seed).log)
  const once = await runSchedule(seed)
  // Another run in between must leave no state behind.
  await runSchedule(seed + 1_000)
  expect((await runSchedule(seed)).trace).toBe(once.trace)
})

test('every schedule keeps every promise, and every kind of fault occurs', async () => {
  console.log(`seeds ${FIRST_SEED} to ${FIRST_SEED + SCHEDULES - 1}`)
  const { failure, coverage } = await runMany(FIRST_SEED, SCHEDULES)
  expect(failure).toBeUndefined()
  console.log(coverage.toString())
  expect(coverage.missing()).toEqual([])
})
