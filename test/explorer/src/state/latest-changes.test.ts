import fc from 'fast-check'
import { expect, test } from 'vitest'
import { RefusedError } from '../../../../client/src/index.ts'
import { allChanges, latestChanges, type Paged } from '../../../../explorer/src/state/latest-changes.ts'
import { organizationOf } from './organization.ts'

const payouts = (count: number) => Array.from({ length: count }, (_, at) => ({ id: `payout_${at}`, replaces: null }))

const pagesOf = async <Item extends { readonly id: string }>(paged: Paged<Item>) => {
  const pages: { ids: readonly string[]; hasMore: boolean }[] = []
  for await (const { data, hasMore } of paged.pages()) pages.push({ ids: data.map(({ id }) => id), hasMore })
  return pages
}

test('each change since a moment comes once, the latest first, however large the records are', async () => {
  const anything = fc.record({
    count: fc.integer({ min: 0, max: 60 }),
    size: fc.integer({ min: 1, max: 20 }),
    room: fc.integer({ min: 1, max: 20 }),
    since: fc.option(fc.integer({ min: 0, max: 70 }), { nil: undefined }),
  })
  await fc.assert(
    fc.asyncProperty(anything, async ({ count, size, room, since }) => {
      const { client } = organizationOf(payouts(count), { room })
      const pages = await pagesOf(latestChanges(client, size, size, since === undefined ? since : String(since)))
      const wanted = payouts(count)
        .map(({ id }) => id)
        .slice(since ?? 0)
      expect(pages.flatMap(({ ids }) => ids)).toEqual(wanted.toReversed())
      expect(pages.map(({ hasMore }) => hasMore)).toEqual(pages.map((_, at) => at < pages.length - 1))
    }),
  )
})

test('a page may have more changes than a request', async () => {
  const { client, sent } = organizationOf(payouts(500))
  const [page, ...others] = await pagesOf(latestChanges(client, 2_000))
  expect([page?.ids.length, others.length, sent.requests]).toEqual([500, 0, 4])
})

test('the first page of a large organization costs two requests', async () => {
  const { client, sent } = organizationOf(payouts(100_000))
  for await (const { data, hasMore } of latestChanges(client, 50).pages()) {
    expect([data.length, data[0]?.id, hasMore]).toEqual([50, 'payout_99999', true])
    break
  }
  expect(sent).toEqual({ requests: 2, changes: 50 })
})

test('a key without totals gets all changes, the oldest first, and no latest ones', async () => {
  const { client } = organizationOf(payouts(5), { hasTotals: false })
  expect((await pagesOf(allChanges(client, 3))).flatMap(({ ids }) => ids)).toEqual(payouts(5).map(({ id }) => id))
  await expect(pagesOf(latestChanges(client, 3))).rejects.toMatchObject({ status: 403 })
})

test('a list that has begun ends with a refusal: it does not begin anew, with the changes that were given', async () => {
  const { client } = organizationOf(payouts(5))
  const { changes } = client
  const seen: string[] = []
  const read = async () => {
    for await (const { data } of allChanges(client, 2).pages()) {
      seen.push(...data.map(({ id }) => id))
      const refuseOnce = () => {
        Object.assign(client, { changes })
        throw new RefusedError(new Response(null, { status: 403 }), { code: 'forbidden', message: 'no' })
      }
      Object.assign(client, { changes: refuseOnce })
    }
  }
  await expect(read()).rejects.toMatchObject({ status: 403 })
  expect(seen).toEqual(['payout_4', 'payout_3'])
})
