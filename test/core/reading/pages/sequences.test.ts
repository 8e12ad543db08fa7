/** The numbers of changes, over an Elasticsearch whose old copies lack some of them. */
import { expect, test } from 'vitest'
import { AGREED_AFTER } from '../../../../core/reading/limits.ts'
import { createSequences } from '../../../../core/reading/pages/sequences.ts'
import type { ScopedSearch } from '../../../../core/store/index.ts'
import { layoutOf } from '../../../../schemas/stored/layout.ts'
import { generationOf } from '../../../support/layout.ts'
import { scopeOf } from '../../../support/read-scope.ts'

type Range = { readonly gt: number; readonly lte: number }
const scope = scopeOf('org_a')

/** @param stored offsets of changes; the test takes some away while an old copy answers */
const over = (stored: readonly number[], shards = 1) => {
  let time = 0
  const state = { seqs: stored, searches: 0 }
  const layout = layoutOf('p', { generation: 'g1', topic: 't', layout: 3, routing_partition_size: shards })
  const position = { generation: { ...generationOf(), layout }, publishedTo: 100, time: 0, takenBack: 0 }
  const answerOf = (hits: readonly object[], buckets: readonly object[]) =>
    Buffer.from(
      JSON.stringify({
        timed_out: false,
        _shards: { total: 1, successful: 1, skipped: 0, failed: 0 },
        hits: { max_score: null, hits },
        aggregations: { all: { buckets } },
      }),
    )
  const search: ScopedSearch = async ({ index }, body) => {
    if (index.endsWith('-periods')) return answerOf([], [])
    state.searches++
    const ranges = JSON.parse(body).aggs.all.filters.filters as { range: { seq: Range } }[]
    const buckets = ranges.map(({ range: { seq } }) => ({
      doc_count: state.seqs.filter(one => one > seq.gt && one <= seq.lte).length,
    }))
    return answerOf([], buckets)
  }
  const { of } = createSequences(search, () => time)
  const page = (before: number, ...seqs: number[]) => of(scope, position, { before, seqs, isWhole: true })
  return { state, page, pass: (by: number) => (time += by) }
}

test('a page is numbered from the page before it, without a search, while that was read just before', async () => {
  const { state, page, pass } = over([1, 2, 3, 4])
  expect(await page(-1, 1, 2)).toEqual([1, 2])
  pass(AGREED_AFTER - 1)
  expect([await page(2, 3, 4), state.searches]).toEqual([[3, 4], 0])
})

test('a number that an old copy said is right again after a second, also for one who walks on all the time', async () => {
  const { state, page, pass } = over(Array.from({ length: 30 }, (_, at) => at))
  state.seqs = state.seqs.filter(seq => seq !== 1)
  expect(await page(3, 4)).toEqual([4])
  state.seqs = Array.from({ length: 30 }, (_, at) => at)
  const numbers: (number | undefined)[] = []
  for (let before = 4; before < 10; before++) {
    pass(AGREED_AFTER / 4)
    numbers.push((await page(before, before + 1))[0])
  }
  expect(numbers).toEqual([5, 6, 7, 9, 10, 11])
})

test('a number is kept once two searches agree on it', async () => {
  const { state, page, pass } = over([1, 2, 3])
  for (const searches of [1, 2, 2, 2]) {
    await page(2, 3)
    pass(AGREED_AFTER)
    expect(state.searches).toBe(searches)
  }
})

test('a page without a change between those that it has is refused, if an organization has several shards', async () => {
  const { page } = over([1, 2, 3], 2)
  await expect(page(-1, 1, 3)).rejects.toMatchObject({ reason: 'elasticsearch_malformed_search' })
  expect(await page(-1, 1, 2, 3)).toEqual([1, 2, 3])
})

test('a page of an organization in one shard is not counted', async () => {
  const { state, page } = over([1, 2, 3])
  expect([await page(-1, 1, 2, 3), state.searches]).toEqual([[1, 2, 3], 0])
})
