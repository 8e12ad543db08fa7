import { expect, test } from 'vitest'
import { createCommitter } from '../../../../core/projection/flow/stream-side.ts'
import { COMMIT_INTERVAL_MS } from '../../../../core/projection/limits.ts'
import { Clock } from '../../../projector/clock.ts'
import { everythingRuns } from '../../../projector/held.ts'

const setUp = () => {
  const clock = new Clock()
  const told: string[] = []
  let working = true
  const commit = async (partition: number, position: number): Promise<void> => {
    told.push(`${partition}: ${position}`)
    if (!working) throw new Error('the group is rebalancing')
  }
  const committer = createCommitter(() => ({ commit }), clock.now)
  return {
    committer,
    clock,
    told,
    works: (now: boolean) => {
      working = now
    },
    offer: async (partition: number, position: number) => {
      void committer.offer(partition, position)
      await everythingRuns()
    },
  }
}

test('commits at once, then at most once per second and partition, and no position twice', async () => {
  const { offer, clock, told, committer } = setUp()
  await offer(0, 5)
  await offer(1, 7)
  await offer(0, 6)
  await clock.move(COMMIT_INTERVAL_MS - 1)
  await offer(0, 7)
  expect(told.splice(0)).toEqual(['0: 5', '1: 7'])
  await clock.move(1)
  await offer(0, 8)
  await offer(1, 7)
  expect(told).toEqual(['0: 8'])
  expect([committer.committedTo(0), committer.committedTo(1), committer.committedTo(2)]).toEqual([8, 7, 0])
})

test('offers a failed commit again, even if the position has not moved', async () => {
  const { offer, clock, told, committer, works } = setUp()
  works(false)
  await offer(0, 5)
  expect(committer.committedTo(0)).toBe(0)
  works(true)
  await offer(0, 5)
  expect(told).toEqual(['0: 5'])
  await clock.move(COMMIT_INTERVAL_MS)
  await offer(0, 5)
  expect(told).toEqual(['0: 5', '0: 5'])
  expect(committer.committedTo(0)).toBe(5)
})

test('a stop commits everything once more, and a failure then does not delay the end', async () => {
  const { offer, told, committer, works } = setUp()
  await offer(0, 5)
  await committer.flush([
    [0, 6],
    [1, 3],
  ])
  expect(told).toEqual(['0: 5', '0: 6', '1: 3'])
  works(false)
  await committer.flush([[0, 7]])
  expect(committer.committedTo(0)).toBe(6)
})
