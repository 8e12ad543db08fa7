/**
 * Symptom: an empty list claimed to include an instant at which the first records were already published. Cause: the
 * oldest time of all partitions was read after the page, when positions had passed those records. Found by the
 * simulation.
 */
import { expect, test } from 'vitest'
import { createProjectionTime } from '../../../../core/reading/pages/read-list.ts'
import { searchAnswer } from '../../../api/answers.ts'
import { generationOf } from '../../../support/layout.ts'
import { scopeOf } from '../../../support/read-scope.ts'

const generation = generationOf({ partitions: 2 })
const timeOf = (oldest: number) =>
  createProjectionTime(
    async () => searchAnswer('p-g1-reps', []),
    async () => oldest,
  )

test('an organization without a record gets no later time than that of its empty page', async () => {
  const position = { generation, publishedTo: 0, time: 1_000, takenBack: 0 }
  expect(await timeOf(5_000)(scopeOf('org_a'), position, 'unknown')).toBe(1_000)
})

test('an organization without a record gets the oldest time of all partitions, whatever the time of its own partition', async () => {
  const position = { generation, publishedTo: 7, time: 1_000, takenBack: 0 }
  expect(await timeOf(400)(scopeOf('org_a'), position, 'unknown')).toBe(400)
})
