import { expect, test } from 'vitest'
import { TOTALS_AT_ONCE } from '../../api/limits.ts'
import type { ReaderParts } from '../../api/read-list.ts'
import { createReadTotals } from '../../api/read-totals.ts'

const generation = { name: 'g1', source: 's', partitions: 1, rules: 2 }
const position = { generation, publishedTo: 100, time: 7 }
const signal = new AbortController().signal

type Bucket = { key: Record<string, string>; doc_count: number }
type Body = {
  size: number
  aggs?: { all: { composite: { sources: object[] } } }
  query: { bool: { filter: object[] } }
}

const answerOf = (hits: object[], buckets?: Bucket[]): Buffer =>
  Buffer.from(
    JSON.stringify({
      timed_out: false,
      _shards: { total: 1, successful: 1, skipped: 0, failed: 0 },
      hits: { max_score: null, hits },
      ...(buckets && { aggregations: { all: { buckets } } }),
    }),
  )

/** Totals over an Elasticsearch that has these amounts of every organization. */
const totalsOver = (
  amounts: readonly { period: string; amount: string; count: number }[],
  gate = Promise.resolve(),
) => {
  const asked: Body[] = []
  let last = 5
  const parts = {
    prefix: 'p',
    readAt: async () => ({ position, documents: [] }),
    positionAt: async () => position,
    places: { find: () => ({ documents: () => [], places: () => [] }), remember: () => undefined },
    projectionTime: async () => 7,
  } as unknown as ReaderParts
  const read = createReadTotals(parts, async (index, text) => {
    const body = JSON.parse(text) as Body
    if (!body.aggs)
      return answerOf([
        { _index: 'p-g1-payouts', _id: `org_a:payout_${last}`, _source: { seq: last, at: 1 }, sort: [last] },
      ])
    asked.push(body)
    await gate
    if (index !== 'p-g1-payouts') return answerOf([], [])
    const wanted = JSON.stringify(body.query)
    const isOfPeriods = body.aggs.all.composite.sources.length === 1
    const found = isOfPeriods ? amounts : amounts.filter(({ period }) => wanted.includes(`"${period}"`))
    return answerOf(
      [],
      found.map(({ period, amount, count }) => ({
        key: { period_id: period, ...(!isOfPeriods && { currency: 'EUR', amount }) },
        doc_count: count,
      })),
    )
  })
  return { asked, read: (org = 'org_a') => read(org, undefined, signal), change: () => last++ }
}

test('totals are the amounts times how often each occurs, in order of period', async () => {
  const { read } = totalsOver([
    { period: 'period_2', amount: '0.10', count: 3 },
    { period: 'period_1', amount: '-1.50', count: 2 },
  ])
  const { totals } = await read()
  expect(totals.last_change_id).toBe('payout_5')
  expect(totals.totals.map(({ period_id, owed_amount, owed_count }) => [period_id, owed_amount, owed_count])).toEqual([
    ['period_1', '-3', 2],
    ['period_2', '0.3', 3],
  ])
})

test('totals are summed once for all who ask at the same time, and again only after a change', async () => {
  const { asked, read, change } = totalsOver([{ period: 'period_1', amount: '1', count: 1 }])
  await Promise.all([read(), read(), read()])
  const once = asked.length
  await read()
  expect(asked.length).toBe(once)
  change()
  await read()
  expect(asked.length).toBe(2 * once)
})

test('periods with many records are looked through one after the other, small ones together', async () => {
  const { asked, read } = totalsOver(
    [15_000, 4_000, 1_000, 2, 90_000, 3].map((count, place) => ({ period: `period_${place}`, amount: '1', count })),
  )
  const { totals } = await read()
  expect(totals.totals.map(({ owed_count }) => owed_count)).toEqual([15_000, 4_000, 1_000, 2, 90_000, 3])
  const portions = asked.flatMap(({ query, aggs }) =>
    aggs?.all.composite.sources.length === 3 ? [JSON.stringify(query).match(/period_\d/g)] : [],
  )
  expect(portions).toEqual([['period_0', 'period_1', 'period_2'], ['period_3'], ['period_4'], ['period_5']])
})

test('more summings than there may be at once are refused, and one that is over makes room', async () => {
  const gate = Promise.withResolvers<void>()
  const { read } = totalsOver([], gate.promise)
  const running = Array.from({ length: TOTALS_AT_ONCE }, (_, place) => read(`org_${place}`))
  await Promise.resolve()
  await expect(read('org_more')).rejects.toMatchObject({ code: 'unavailable', because: 'totals_in_flight' })
  gate.resolve()
  await Promise.all(running)
  await expect(read('org_more')).resolves.toBeDefined()
})
