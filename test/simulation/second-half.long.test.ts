/** The other half of the schedules of `npm test`. */
import { expect, test } from 'vitest'
import { FIRST_SEED, runMany, SCHEDULES } from './many.ts'

test('every schedule keeps every promise, and every kind of fault occurs', async () => {
  const first = FIRST_SEED + SCHEDULES
  console.log(`seeds ${first} to ${first + SCHEDULES - 1}`)
  const { failure, coverage } = await runMany(first, SCHEDULES)
  expect(failure).toBeUndefined()
  console.log(coverage.toString())
  expect(coverage.missing()).toEqual([])
})
