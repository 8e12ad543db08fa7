/** A client with several users: requests end with the signal of their user, and kept answers are for all. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createClient } from '../../client/src/index.ts'

test('until() ends the requests of one user, as of a moment too, and all users share the kept answers', async () => {
  const asked: (string | undefined)[] = []
  const server = createServer(({ url, headers }, response) => {
    const tag = headers['if-none-match']
    asked.push(url, tag)
    if (url !== '/reps/rep_1') response.writeHead(503, { 'Retry-After': '30' }).end('{}')
    else if (tag === '"1"') response.writeHead(304, { ETag: tag }).end()
    else response.writeHead(200, { ETag: '"1"' }).end('{"data":{"id":"rep_1"}}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const [whole, first, second] = [new AbortController(), new AbortController(), new AbortController()]
  const client = createClient({ baseUrl: `http://127.0.0.1:${port}`, key: 'key_text', signal: whole.signal })
  const [one, other] = [client.until(first.signal), client.until(second.signal)]
  expect(await one.rep('rep_1')).toEqual({ id: 'rep_1' })
  expect(await other.rep('rep_1')).toEqual({ id: 'rep_1' })
  expect(asked.splice(0)).toEqual(['/reps/rep_1', undefined, '/reps/rep_1', '"1"'])

  const then = one.asOf('rep_1')
  const ending = then.totals()
  const goingOn = other.totals().catch((error: unknown) => error)
  await expect.poll(() => asked).toHaveLength(4)
  expect(asked).toContain('/totals?as_of=rep_1')
  first.abort(new Error('enough'))
  await expect(ending).rejects.toThrow('enough')
  await expect(then.totals()).rejects.toThrow('enough')
  whole.abort(new Error('all is over'))
  expect(await goingOn).toMatchObject({ message: 'all is over' })
  expect(asked).toHaveLength(4)
})

test('noting() hands over the time of each answer to all who ask for it, of one that was kept, too', async () => {
  const times = ['2026-02-01T08:30:00.000Z', '2026-02-01T08:31:00.000Z']
  const fetch = async ({ headers, url }: Request) => {
    if (url.endsWith('/rep_9')) return Response.json({ error: { code: 'not_found', message: 'No.' } }, { status: 404 })
    const time = { ETag: '"1"', 'Projection-Time': times.shift() ?? '' }
    if (headers.get('If-None-Match') !== null) return new Response(null, { status: 304, headers: time })
    return Response.json({ data: { id: 'rep_1' } }, { headers: time })
  }
  const [one, both]: [string[], string[]] = [[], []]
  const client = createClient({ baseUrl: 'http://127.0.0.1', key: 'key_text', fetch })
  const noting = client.noting(time => void both.push(time))
  await noting.rep('rep_1')
  await noting.noting(time => void one.push(time)).rep('rep_1')
  await expect(noting.rep('rep_9')).rejects.toThrow('not_found')
  expect([one, both]).toEqual([['2026-02-01T08:31:00.000Z'], ['2026-02-01T08:30:00.000Z', '2026-02-01T08:31:00.000Z']])
})
