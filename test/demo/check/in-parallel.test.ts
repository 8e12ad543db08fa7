import { expect, test } from 'vitest'
import { inParallel } from '../../../demo/check/in-parallel.ts'

test('parallel work keeps the order of the items and the limit', async () => {
  let [atOnce, most] = [0, 0]
  const results = await inParallel([5, 1, 4, 2, 3], 2, async item => {
    most = Math.max(most, ++atOnce)
    await new Promise(resolve => setTimeout(resolve, item))
    atOnce--
    return item * 10
  })
  expect(results).toEqual([50, 10, 40, 20, 30])
  expect(most).toBe(2)
})
