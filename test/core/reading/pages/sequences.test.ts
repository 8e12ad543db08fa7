/** The numbers of changes, over an Elasticsearch whose old copies lack some of them. */
import { expect, test } from 'vitest'
import { AGREED_AFTER } from '../../../../core/reading/limits.ts'
import { createSequences } from '../../../../core/reading/pages/sequences.ts'
import type { ScopedSearch } from '../../../../core/store/index.ts'
import { layoutOf } from '../../../../schemas/stored/layout.ts'
import { generationOf } from '../../../support/layout.ts'
import { scopeOf } from '../../../support/read-scope.ts'

type Range = { readonly gt?: number; readonly lte?: number; readonly lt?: number }
type Asked = {
  readonly from: number
  readonly query: { readonly bool: { readonly filter: readonly { readonly range?: Ranges }[] } }
  readonly aggs?: { readonly all: { readonly filters: { readonly filters: readonly Counted[] } } }
}
type Counted = { readonly range?: Ranges; readonly terms?: { readonly seq: readonly number[] } }
type Ranges = { readonly seq?: Range; readonly sequence?: Range }
type Balance = { readonly seq: number; readonly sequence: number }
const isIn = (value: number, { gt = -1, lte = 1_000, lt = 1_000 }: Range = {}): boolean =>
  value > gt && value <= lte && value < lt
const scope = scopeOf('org_a')

/** @param stored offsets of changes; the test takes some away while an old copy answers */
const over = (stored: readonly number[], shards = 1, balances: readonly Balance[] = []) => {
  let time = 0
  const state = { seqs: stored, searches: 0, afterOneSearch: undefined as readonly number[] | undefined }
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
    const { from, query, aggs } = JSON.parse(body) as Asked
    const ranges = query.bool.filter.map(({ range = {} }) => range)
    if (index.endsWith('-periods')) {
      const isAsked = (one: Balance) =>
        ranges.every(({ seq, sequence }) => isIn(one.seq, seq) && isIn(one.sequence, sequence))
      return answerOf(
        balances
          .filter(isAsked)
          .slice(-1)
          .map(_source => ({ _source })),
        [],
      )
    }
    state.searches++
    const { seqs } = state
    state.seqs = state.afterOneSearch ?? seqs
    const asked = seqs.filter(one => ranges.every(range => isIn(one, range.seq)))
    if (aggs === undefined) {
      const seq = asked[from]
      return answerOf(seq === undefined ? [] : [{ _index: index, _id: `org_a:payout_${seq}`, _source: { seq } }], [])
    }
    const buckets = aggs.all.filters.filters.map(({ range, terms }) => ({
      doc_count: asked.filter(one => (terms ? terms.seq.includes(one) : isIn(one, range?.seq))).length,
    }))
    return answerOf([], buckets)
  }
  const { of, changeAt } = createSequences(search, () => time)
  const page = (before: number, ...seqs: number[]) => of(scope, position, { before, seqs, isWhole: true })
  const filtered = (...seqs: number[]) => of(scope, position, { before: -1, seqs, isWhole: false })
  return {
    state,
    page,
    filtered,
    at: (sequence: number) => changeAt(scope, position, sequence),
    pass: (by: number) => (time += by),
  }
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

const malformed = { code: 'unavailable', reason: 'elasticsearch_malformed_search' }

test('a page under a filter is refused if a count lacks a change of the page', async () => {
  const { state, filtered } = over([1, 2, 3])
  state.seqs = [1]
  await expect(filtered(1, 2, 3)).rejects.toMatchObject(malformed)
  state.seqs = [1, 2, 3]
  expect(await filtered(1, 3)).toEqual([1, 3])
})

test('a page is refused if the count up to its cursor lacks the cursor, and a balance at the cursor needs no count', async () => {
  const { state, page } = over([1, 2, 3])
  state.seqs = [1]
  await expect(page(2, 3)).rejects.toMatchObject(malformed)
  const counted = over([], 1, [{ seq: 2, sequence: 2 }])
  expect([await counted.page(2, 3), await counted.filtered(2)]).toEqual([[3], [2]])
})

test('a change is found by its number if an organization has one shard or several, and costs a count if several', async () => {
  const counts: number[] = []
  for (const shards of [1, 2]) {
    const { state, at } = over([10, 20, 30], shards)
    expect(await at(2)).toEqual({ name: { kind: 'payouts', id: 'payout_20' }, seq: 20 })
    expect(await at(4)).toBe(undefined)
    counts.push(state.searches)
  }
  expect(counts).toEqual([2, 3])
})

test('a change that has the place of another one, because a shard lacks changes before it, is refused', async () => {
  const changes = Array.from({ length: 8 }, (_, at) => at + 10)
  const withHoles = changes.filter(seq => seq !== 11 && seq !== 13)
  const { state, at, page } = over(changes, 2)
  Object.assign(state, { seqs: withHoles, afterOneSearch: changes })
  await expect(at(4)).rejects.toMatchObject(malformed)
  expect(await at(4)).toMatchObject({ seq: 13 })
  expect(await page(13, 14, 15)).toEqual([5, 6])
  // The old copy answers each search, and a balance knows better.
  const again = over(changes, 2, [{ seq: 15, sequence: 6 }])
  again.state.seqs = withHoles
  await expect(again.at(4)).rejects.toMatchObject(malformed)
})

test('a number that a balance proves is not beyond the last one, although the last changes are left out', async () => {
  const { state, at } = over([1, 2, 3], 1, [{ seq: 3, sequence: 3 }])
  state.seqs = [1, 2]
  await expect(at(3)).rejects.toMatchObject(malformed)
  expect(await at(4)).toBe(undefined)
})
