/**
 * Symptom: an empty list said that it held everything up to an instant at which the organization's first records were
 * already published. Cause: the oldest time of all partitions was read after the page, and the position had passed the
 * records since. Found by the simulation.
 */
import { expect, test } from 'vitest'
import { createProjectionTime } from '../../../api/read/projection-time.ts'
import { searchAnswer } from '../answers.ts'

const signal = new AbortController().signal
const generation = { name: 'g1', source: 's', partitions: 2, rules: 1 }
const timeOf = (oldest: number) =>
  createProjectionTime(
    'p',
    async () => searchAnswer('p-g1-reps', []),
    async () => oldest,
  )

test('an organization without a record yet gets no later time than that of the page that shows none', async () => {
  const position = { generation, publishedTo: 0, time: 1_000, takenBack: 0 }
  expect(await timeOf(5_000)('org_a', position, 'nothing', signal)).toBe(1_000)
})

test('an organization without a record gets the oldest time of all partitions, whatever its own', async () => {
  const position = { generation, publishedTo: 7, time: 1_000, takenBack: 0 }
  expect(await timeOf(400)('org_a', position, 'nothing', signal)).toBe(400)
})
