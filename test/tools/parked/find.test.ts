/** The search that lists parked records. Each record may have 8 MiB. */
import { expect, test } from 'vitest'
import type { Request } from '../../../core/store/elasticsearch/client.ts'
import { findParked, pagesInOrder } from '../../../tools/parked/find.ts'
import { sending } from '../../support/answering.ts'

const live = {
  events: { layout: { indexOf: () => 'p' } },
  'api-keys': { layout: { indexOf: () => 'k' } },
} as unknown as Parameters<typeof findParked>[1]

test('parked records are listed by their indexed fields: no record is loaded', async () => {
  const asked: Request[] = []
  const send = sending(async request => {
    asked.push(request)
    const fields = { code: ['rep_unknown'], topic: ['t'], partition: [0], offset: [7], at: [9] }
    const hits = { total: { value: 1 }, hits: [{ fields }] }
    return { status: 200, body: { _shards: { failed: 0 }, hits, aggregations: { ahead: { doc_count: 0 } } } }
  })
  expect(await findParked(send, live, { filter: {}, order: 'oldest', now: 9 }, 10)).toEqual({
    total: 1,
    ahead: 0,
    records: [{ code: 'rep_unknown', topic: 't', partition: 0, offset: 7, at: 9 }],
  })
  expect(asked.at(-1)?.body).toMatchObject({ _source: false })
})

test('a signal stops a search between two pages', async () => {
  const stopping = new AbortController()
  const send = sending(async () => {
    const hits = { hits: Array.from({ length: 1_000 }, () => ({ fields: { offset: [7] } })) }
    return { status: 200, body: { _shards: { failed: 0 }, hits } }
  })
  const pages = pagesInOrder({ send, live, signal: stopping.signal }, {})
  expect((await pages.next()).value).toHaveLength(1_000)
  stopping.abort(new Error('stopped'))
  await expect(pages.next()).rejects.toThrow('stopped')
})
