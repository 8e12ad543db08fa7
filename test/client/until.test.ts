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
