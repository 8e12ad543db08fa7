/** One publisher has wrong times, in many histories; most of them have two to four organizations. */
import { expect, test } from 'vitest'
import { prepareHistory } from './run.ts'

const HISTORIES = Number(process.env.SIMULATED_HISTORIES ?? 25)

test("one organization's times never change a document of another one, nor its answers", async () => {
  const counts = new Map<number, number>()
  let common = 0
  for (let seed = 1; seed <= HISTORIES; seed++) {
    const { history, others } = await prepareHistory(seed)
    const { organizations, stranger } = history
    counts.set(organizations.length, (counts.get(organizations.length) ?? 0) + 1)
    if (stranger === undefined) continue
    const isBeside = organizations.some(
      org => org !== stranger && history.partitionOf(org) === history.partitionOf(stranger) && others.includes(org),
    )
    if (isBeside) common++
  }
  console.log(`histories by organizations: ${[...counts].join(' ')}; ${common} with another one in the partition`)
  expect(common).toBeGreaterThan(HISTORIES / 2)
})
