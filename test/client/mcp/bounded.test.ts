import { expect, test } from 'vitest'
import { type AnswerPart, answerPart, firstOf, readPage } from '../../../client/mcp/src/bounded.ts'
import type { List, Page } from '../../../client/src/index.ts'

type Item = { readonly id: string; readonly text: string }
const items = (count: number, length: number): Item[] =>
  Array.from({ length: count }, (_, at) => ({ id: `payout_${at}`, text: 'x'.repeat(length) }))
const listOf = (page: Page<Item>): List<Item> => {
  async function* pages() {
    yield page
    throw new Error('an answer has one page')
  }
  return { pages, [Symbol.asyncIterator]: () => expect.unreachable() }
}
const same = (item: Item): Item => item
const projectionTime = '2026-01-01T00:00:00Z'

test('a page that has no room for all records ends early, and its cursor is that of the last record in it', async () => {
  const data = items(10, 9_000)
  const page = await readPage(listOf({ data, hasMore: false, nextCursor: 'payout_9', projectionTime }), same)
  expect(page).toEqual({
    data: data.slice(0, 4),
    has_more: true,
    next_cursor: 'payout_3',
    projection_time: projectionTime,
  })
})

test('a page that has room is that of the API, and an empty cursor is null', async () => {
  const data = items(3, 10)
  const whole = await readPage(listOf({ data, hasMore: true, nextCursor: 'payout_2', projectionTime }), same)
  expect(whole).toMatchObject({ data, has_more: true, next_cursor: 'payout_2' })
  const empty = await readPage(listOf({ data: [], hasMore: false, nextCursor: '', projectionTime }), same)
  expect(empty).toMatchObject({ data: [], has_more: false, next_cursor: null })
})

test('a list that was read by ids has no cursor, also if there is no room for all of it', async () => {
  const page = await readPage(listOf({ data: items(10, 9_000), hasMore: false, nextCursor: '', projectionTime }), same)
  expect(page).toMatchObject({ data: items(4, 9_000), has_more: true, next_cursor: null })
})

test('one record is always read, also if it is too large: a walk ends', () => {
  expect(firstOf(items(3, 100_000))).toHaveLength(1)
  expect(firstOf([])).toEqual([])
})

test('the parts of a payout are its lines, each once', () => {
  const lines = items(7, 5_000)
  const read: Item[] = []
  const counts: number[] = []
  for (let next: number | null = 1; next !== null; ) {
    const part: AnswerPart<Item> = answerPart(lines, next, 3, 12_000)
    expect([part.count, part.has_more]).toEqual([7, part.next !== null])
    read.push(...part.data)
    counts.push(part.data.length)
    next = part.next
  }
  expect(read).toEqual(lines)
  expect(counts).toEqual([2, 2, 2, 1])
  expect(answerPart(lines, 8, 3)).toEqual({ data: [], count: 7, has_more: false, next: null })
})
