/** How much a scan asks of Elasticsearch at once, over a simulated index. */
import { expect, test } from 'vitest'
import { Unanswered } from '../../../core/runtime/keep-trying.ts'
import { AnswerTooLong } from '../../../core/store/elasticsearch/client.ts'
import { layoutOf } from '../../../schemas/stored/layout.ts'
import { nextSize, scan } from '../../../tools/documents/scan.ts'
import { portionsOf } from '../../../tools/documents/sizes.ts'
import { CommandError } from '../../../tools/failures.ts'
import { findLeftovers } from '../../../tools/leftovers/find-leftovers.ts'
import { SCAN_BYTES, SCAN_LOADED_BYTES, SCAN_SIZES } from '../../../tools/limits.ts'
import { sending } from '../../support/answering.ts'

const MiB = 1024 * 1024
type Search = { size: number; search_after?: [number]; _source?: string[] }

/** An index with documents of these sizes. `fail` may throw for a search. */
const indexOf = (
  sizes: readonly number[],
  fail: (search: Search, size: number) => void = () => undefined,
  unrefreshed = 0,
  refused?: number,
) => {
  const answered: number[] = []
  let [open, pauses] = [0, 0]
  const send = sending(async ({ method, path, body }) => {
    if (path.endsWith('/_pit') && method === 'POST') open++
    if (path === '/_pit' && method === 'DELETE') open--
    if (path.endsWith('/_refresh') && unrefreshed-- > 0) return { status: 200, body: { _shards: { failed: 1 } } }
    if (path.endsWith('/_refresh')) return { status: refused ?? 200, body: { _shards: { failed: 0 } } }
    if (path !== '/_search') return { status: 200, body: { id: 'pit' } }
    const search = body as Search
    const from = (search.search_after?.[0] ?? -1) + 1
    fail(search, Math.min(search.size, sizes.length - from))
    const hits = sizes.slice(from, from + search.size)
    if (search._source === undefined) answered.push(hits.reduce((sum, size) => sum + size, 0))
    const documents = hits.map((body_bytes, at) => ({
      _id: `d${from + at}`,
      _source: { body_bytes },
      sort: [from + at],
    }))
    return { status: 200, body: { pit_id: 'pit', timed_out: false, _shards: { failed: 0 }, hits: { hits: documents } } }
  })
  const sleep = async () => void pauses++
  const read = async (): Promise<string[]> => {
    const ids: string[] = []
    for await (const { id } of scan({ index: 'i', routing: undefined, filters: [], records: [] }, { send, sleep }))
      ids.push(id)
    return ids
  }
  return { read, answered, open: () => open, pauses: () => pauses }
}
const idsOf = (sizes: readonly number[]) => sizes.map((_, at) => `d${at}`)

test('a response exceeds its limit only for one larger document; each document comes once, in order', async () => {
  const sizes = Array.from({ length: 3_000 }, (_, at) => (at % 97 === 0 ? 11 * MiB : at % 13 === 0 ? 3 * MiB : 900))
  const { read, answered, open } = indexOf(sizes)
  expect(await read()).toEqual(idsOf(sizes))
  for (const bytes of answered) expect(bytes <= SCAN_BYTES || bytes === 11 * MiB).toBe(true)
  expect(open()).toBe(0)
})

test('a cluster that permits no point in time for so long is named with its setting, also when leftovers are sought', async () => {
  const send = sending(async ({ path }) =>
    path.includes('/_pit') ? { status: 400, body: {} } : { status: 200, body: { _shards: { failed: 0 } } },
  )
  const reading = { send, sleep: async () => undefined }
  const why = 'cannot be read: Elasticsearch answers 400; search.max_keep_alive must be 15m or more'
  const target = { index: 'i', routing: undefined, filters: [], records: [] }
  await expect(scan(target, reading).next()).rejects.toThrow(new CommandError(`i ${why}`))
  const layout = layoutOf('c', { generation: 'g1', topic: 't', layout: 2 })
  const leftovers = findLeftovers({ layout, isOfKeys: false }, [0], reading)
  await expect(leftovers.next()).rejects.toThrow(new CommandError(`${layout.indices.join()} ${why}`))
})

test('small documents are read in large pages', async () => {
  const sizes = Array.from({ length: 10_000 }, () => 700)
  const { read, answered } = indexOf(sizes)
  expect(await read()).toEqual(idsOf(sizes))
  expect(answered.length).toBeLessThan(20)
})

test('a response that is too long is requested again with half as many documents, down to one', async () => {
  const sizes = Array.from({ length: 50 }, () => 10)
  const { read, answered } = indexOf(sizes, ({ _source }, count) => {
    if (_source === undefined && count > 1) throw new AnswerTooLong()
  })
  expect(await read()).toEqual(idsOf(sizes))
  expect(answered).toHaveLength(50)
})

test('a page that fails is requested again, smaller; if it always fails, the scan ends and leaves nothing open', async () => {
  const sizes = Array.from({ length: 300 }, () => 10)
  const slow = indexOf(sizes, ({ size }) => {
    if (size > 4) throw new Unanswered('elasticsearch', 0)
  })
  expect(await slow.read()).toEqual(idsOf(sizes))
  expect(slow.pauses()).toBeGreaterThan(0)
  const gone = indexOf(sizes, () => {
    throw new Unanswered('elasticsearch', 0)
  })
  await expect(gone.read()).rejects.toThrow(Unanswered)
  expect(gone.open()).toBe(0)
})

test('an index with a failed refresh is refreshed again; if it always fails, the scan ends', async () => {
  const later = indexOf([10, 10], undefined, 2)
  expect(await later.read()).toEqual(['d0', 'd1'])
  expect(later.pauses()).toBe(2)
  const never = indexOf([10, 10], undefined, Number.POSITIVE_INFINITY)
  await expect(never.read()).rejects.toThrow(Unanswered)
  expect(never.answered).toEqual([])
})

test('a scan, and a search for leftovers, take no other answer than 200 for a refresh; of a missing index the read tells', async () => {
  for (const status of [302, 400, 413]) {
    const { read, answered } = indexOf([10], undefined, 0, status)
    await expect(read()).rejects.toThrow(`i cannot be read whole: Elasticsearch answers ${status}`)
    expect(answered).toEqual([])
    const send = sending(async () => ({ status, body: {} }))
    const layout = layoutOf('c', { generation: 'g1', topic: 't', layout: 2 })
    const leftovers = findLeftovers({ layout, isOfKeys: false }, [0], { send, sleep: async () => undefined })
    await expect(leftovers.next()).rejects.toThrow(`cannot be read whole: Elasticsearch answers ${status}`)
  }
  const gone = sending(async () => ({ status: 404, body: {} }))
  const target = { index: 'i', routing: undefined, filters: [], records: [] }
  const read = scan(target, { send: gone, sleep: async () => undefined }).next()
  await expect(read).rejects.toThrow('i cannot be read: Elasticsearch answers 404')
})

test('the scan ends if it gets other documents than those whose sizes it read', async () => {
  const sizes = [10, 10]
  const { read } = indexOf(sizes, ({ _source }) => {
    if (_source === undefined) sizes.length = 0
  })
  await expect(read()).rejects.toThrow(CommandError)
})

test('the larger the documents were, the smaller is the next search for sizes', () => {
  expect(nextSize(8, [10, 10])).toBe(32)
  expect(nextSize(SCAN_SIZES, [10])).toBe(SCAN_SIZES)
  expect(nextSize(8, [SCAN_LOADED_BYTES / 2, SCAN_LOADED_BYTES / 2])).toBe(2)
  expect(nextSize(8, [3 * SCAN_LOADED_BYTES])).toBe(1)
  expect(nextSize(8, [])).toBe(1)
})

test('items are split into portions that fit, each once and in order', () => {
  expect([...portionsOf(['a', 'b', 'c', 'd'], [SCAN_BYTES * 2, 1, SCAN_BYTES - 1, 1])]).toEqual([
    ['a'],
    ['b', 'c'],
    ['d'],
  ])
})
