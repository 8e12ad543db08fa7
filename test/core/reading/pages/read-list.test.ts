import { describe, expect, test } from 'vitest'
import { LARGE_RECORDS_ASKED } from '../../../../core/reading/limits.ts'
import { createCursors } from '../../../../core/reading/pages/cursors.ts'
import { createReadList, createReadPage, type ReaderParts } from '../../../../core/reading/pages/read-list.ts'
import { readListParameters } from '../../../../core/reading/pages/read-parameters.ts'
import { Refusal } from '../../../../core/runtime/refusals.ts'
import { BODY_STORED_MAX } from '../../../../core/store/limits.ts'
import { idOf } from '../../../../core/store/read/slice-documents.ts'
import { PAGE_BYTES_MAX } from '../../../../schemas/limits.ts'
import { recordText, searchAnswer } from '../../../api/answers.ts'
import { generationOf } from '../../../support/layout.ts'
import { scopeOf } from '../../../support/read-scope.ts'

const generation = generationOf()
const position = { generation, publishedTo: 1_000, time: 0, takenBack: 0 }
const asked = {
  org: 'org_a',
  list: 'payouts',
  where: { index: 'i', routing: undefined, filters: [], records: [{ name: 'i', kind: 'payouts' }] },
  after: -1,
  limit: 200,
  position,
} as const

type SearchBody = { size: number; query: { bool: { filter: { range?: { seq?: { gt: number } } }[] } } }

/** A list of records with bodies of these lengths, and the size of each search. */
const listOf = (lengths: readonly number[], most = Number.POSITIVE_INFINITY) => {
  const sizes: number[] = []
  const records = lengths.map((length, place) => ({ id: `org_a:payout_${place}`, place, length }))
  const stored = (record: (typeof records)[number]) => ({
    ...record,
    text: recordText(record.place, `{"x":"${'x'.repeat(record.length - 8)}"}`),
  })
  const readPage = createReadPage(async ({ index }, body) => {
    const { size, query } = JSON.parse(body) as SearchBody
    const after = query.bool.filter.find(filter => filter.range?.seq)?.range?.seq?.gt ?? -1
    sizes.push(size)
    const found = records.filter(({ place }) => place > after).slice(0, size)
    return found.reduce((sum, { length }) => sum + length, 0) > most
      ? 'too_large'
      : searchAnswer(index, found.map(stored))
  })
  const walk = async () => {
    const pages: string[][] = []
    for (let after = -1; ; ) {
      const { hits, hasMore } = await readPage(scopeOf('org_a'), { ...asked, after })
      pages.push(hits.map(idOf))
      if (!hasMore) return pages
      after = hits.at(-1)?.sortValue ?? after
    }
  }
  return { sizes, readPage, walk }
}
const everyId = (count: number) => Array.from({ length: count }, (_, place) => `payout_${place}`)

describe('a page', () => {
  test('is read by one search once the records of the organization are known to be small', async () => {
    const { sizes, walk } = listOf(Array.from({ length: 450 }, () => 1_500))
    const pages = await walk()
    expect(pages.map(page => page.length)).toEqual([200, 200, 50])
    expect(pages.flat()).toEqual(everyId(450))
    expect(sizes).toEqual([3, 198, 201, 201])
  })

  test('never has more than 16 MiB, and never less than one record', async () => {
    const mebibyte = 1024 * 1024
    const { walk } = listOf(Array.from({ length: 7 }, (_, place) => (place === 3 ? 12 : 6) * mebibyte))
    const pages = await walk()
    expect(pages.map(page => page.length)).toEqual([2, 1, 1, 2, 1])
    expect(pages.flat()).toEqual(everyId(7))
  })

  test('that fills its bytes exactly is not cut short', async () => {
    const { walk } = listOf([PAGE_BYTES_MAX / 2, PAGE_BYTES_MAX / 2])
    expect((await walk()).map(page => page.length)).toEqual([2])
  })

  test('never asks for more possibly large records than 64 MiB can hold', async () => {
    const lengths = Array.from({ length: 5 }, () => BODY_STORED_MAX)
    const { sizes, walk } = listOf(lengths)
    expect((await walk()).flat()).toEqual(everyId(5))
    expect(Math.max(...sizes) * BODY_STORED_MAX).toBeLessThanOrEqual(64 * 1024 * 1024)
  })

  test('is read by smaller searches if large records follow small ones', async () => {
    const lengths = Array.from({ length: 210 }, (_, place) => (place % 100 < 60 ? 1_000 : 100_000))
    const { sizes, walk } = listOf(lengths, 2 * 1024 * 1024)
    expect((await walk()).flat()).toEqual(everyId(210))
    expect(sizes).toContain(198)
  })

  test('is unavailable if the response is too large even for a few records', async () => {
    const { walk } = listOf([5_000, 5_000], 100)
    await expect(walk()).rejects.toMatchObject({ code: 'unavailable', reason: 'elasticsearch_too_large' })
  })

  test('is asked for once more, with few records, if Elasticsearch is overloaded; the refusal then says so', async () => {
    const sizes: number[] = []
    const overloaded = createReadPage(async (_, body) => {
      sizes.push((JSON.parse(body) as SearchBody).size)
      return 'overloaded'
    })
    const reps = { ...asked, list: 'reps' } as const
    await expect(overloaded(scopeOf('org_a'), reps)).rejects.toMatchObject({ reason: 'elasticsearch_overloaded' })
    expect(sizes).toEqual([201, LARGE_RECORDS_ASKED])
  })
})

/** Reads the lists of an organization without records. */
const readNothing = () =>
  createReadList({
    cursors: createCursors(),
    readAt: async () => ({ position, documents: [] }),
    positionAsOf: async () => position,
    sequences: { changeAt: async () => undefined },
  } as unknown as ReaderParts)

test('an id that names nothing is refused in the usual words, in each list', async () => {
  const usual = new Refusal('invalid_cursor').message
  for (const list of ['payouts', 'changes'] as const) {
    const asked = { list, ...readListParameters(list, 'starting_after=payout_1') }
    await expect(readNothing()(scopeOf('org_a'), asked)).rejects.toThrow(usual)
  }
})

test('`after` beyond the last change is refused in words that name it, and not `starting_after`', async () => {
  const read = readNothing()
  for (const query of ['after=900', 'after=2&as_of=payout_1']) {
    const refused = await read(scopeOf('org_a'), { list: 'changes', ...readListParameters('changes', query) }).catch(
      (error: unknown) => error,
    )
    expect(refused).toBeInstanceOf(Refusal)
    const { code, message } = refused as Refusal
    expect([code, message]).toEqual(['invalid_cursor', expect.stringContaining('`after`')])
    expect(message).not.toContain('starting_after')
  }
})
