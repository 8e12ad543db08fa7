import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createApiReader, inParallel } from '../../../demo/check/read-api.ts'

/** A server that answers each path with the given object, and any other path with 404. */
const readerOf = async (answers: Record<string, object>) => {
  const server = createServer((request, response) => {
    const answer = answers[request.url ?? '']
    response.writeHead(answer ? 200 : 404).end(JSON.stringify(answer ?? { error: { code: 'not_found' } }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  return createApiReader(`http://127.0.0.1:${port}`, 'a key', new AbortController().signal)
}

test('a walk follows next_cursor until there is no more', async () => {
  const reader = await readerOf({
    '/reps?limit=200': { data: [{ id: 'a' }, { id: 'b' }], has_more: true, next_cursor: 'b' },
    '/reps?limit=200&starting_after=b': { data: [{ id: 'c' }], has_more: false, next_cursor: 'c' },
  })
  expect(await reader.walk('reps')).toEqual([{ id: 'a' }, { id: 'b' }, { id: 'c' }])
})

test('a walk that would not end, or is refused, throws', async () => {
  const reader = await readerOf({
    '/reps?limit=200': { data: [{ id: 'a' }], has_more: true, next_cursor: '' },
    '/payouts?limit=200': { data: [{ id: 'a' }], has_more: true, next_cursor: 'a' },
    '/payouts?limit=200&starting_after=a': { data: [], has_more: true, next_cursor: 'a' },
  })
  await expect(reader.walk('reps')).rejects.toThrow('no new next_cursor')
  await expect(reader.walk('payouts')).rejects.toThrow('no new next_cursor')
  await expect(reader.walk('periods')).rejects.toThrow('404 not_found')
})

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
