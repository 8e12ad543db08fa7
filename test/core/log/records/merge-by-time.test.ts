/** Records of several partitions as one sequence. */
import { expect, test } from 'vitest'
import { mergedByTime } from '../../../../core/log/records/merge-by-time.ts'

type Item = { readonly at: number }

/** A partition in pages of two. */
async function* pagesOf(times: readonly number[], onPage: () => void = () => undefined): AsyncGenerator<Item[]> {
  for (let from = 0; from < times.length; from += 2) {
    onPage()
    yield times.slice(from, from + 2).map(at => ({ at }))
    yield []
  }
}

const merged = async (...partitions: readonly (readonly number[])[]) => {
  const all: [number, number][] = []
  const sources = partitions.map(times => pagesOf(times))
  for await (const [source, { at }] of mergedByTime(sources, item => item.at)) all.push([source, at])
  return all
}

test('the records of all partitions come in the order of their times', async () => {
  expect(await merged([1, 4, 5], [], [2, 3, 6, 7])).toEqual([
    [0, 1],
    [2, 2],
    [2, 3],
    [0, 4],
    [0, 5],
    [2, 6],
    [2, 7],
  ])
  expect(await merged()).toEqual([])
})

test('the records of a partition keep their order, whatever times they have', async () => {
  expect(await merged([9, 1, 8], [2, 3])).toEqual([
    [1, 2],
    [1, 3],
    [0, 9],
    [0, 1],
    [0, 8],
  ])
  // Of equal times, and of times that are no number of milliseconds, the first partition has the first.
  expect(await merged([Number.POSITIVE_INFINITY], [Number.POSITIVE_INFINITY])).toHaveLength(2)
})

test('a page is read when the records before it are used', async () => {
  let pages = 0
  const reading = mergedByTime([pagesOf([1, 2, 3, 4, 5], () => pages++)], item => item.at)
  for (const used of [1, 1, 2]) {
    await reading.next()
    expect(pages).toBe(used)
  }
})
