import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type ClientOptions, createClient, RefusedError } from '../../client/src/index.ts'

type Answer = (request: IncomingMessage, response: ServerResponse) => void

/** Serves these answers one after the other, the last one again and again. Returns a client and what it asked. */
const clientOf = async (answers: readonly Answer[], options: Partial<ClientOptions> = {}) => {
  const asked: { url: string; tag: string | undefined; key: string | undefined; at: number }[] = []
  const server = createServer((request, response) => {
    const { url = '', headers } = request
    const answer = answers[Math.min(asked.length, answers.length - 1)]
    asked.push({ url, tag: headers['if-none-match'], key: headers.authorization, at: performance.now() })
    answer?.(request, response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  return { port, asked, client: createClient({ baseUrl: `http://127.0.0.1:${port}`, key: 'key_text', ...options }) }
}

const ok =
  (body: object, headers: Readonly<Record<string, string>> = {}): Answer =>
  (_, response) =>
    response.writeHead(200, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(body))
const page = (ids: readonly string[], hasMore: boolean, next_cursor = ids.at(-1) ?? '') =>
  ok({ data: ids.map(id => ({ id })), has_more: hasMore, next_cursor }, { 'Projection-Time': '2026-01-01T00:00:00Z' })
const refused =
  (status: number, code: string, headers: Readonly<Record<string, string>> = {}): Answer =>
  (_, response) =>
    response.writeHead(status, headers).end(JSON.stringify({ error: { code, message: 'No.' } }))

/**
 * A client that is answered at once, and whose clock moves only while it pauses: no attempt is cut on a busy machine.
 * `outcomeOf` lets the pauses pass. `asked` has the times of the requests in milliseconds.
 */
const clockedClientOf = (answer: () => Response, timeoutMs: number) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const began = performance.now()
  const asked: number[] = []
  const fetch = async () => {
    asked.push(performance.now() - began)
    return answer()
  }
  const outcomeOf = async <Outcome>(reading: Promise<Outcome>): Promise<Outcome> => {
    let isOver = false
    const end = () => {
      isOver = true
    }
    reading.then(end, end)
    while (!isOver) await vi.advanceTimersToNextTimerAsync()
    return reading
  }
  return { asked, outcomeOf, client: createClient({ baseUrl: 'http://127.0.0.1', key: 'key_text', timeoutMs, fetch }) }
}
const unavailable = (headers: Readonly<Record<string, string>> = {}) => {
  return () => Response.json({ error: { code: 'unavailable', message: 'No.' } }, { status: 503, headers })
}

test('a list is read page by page, with the filter and the moment on each page', async () => {
  const { client, asked } = await clientOf([page(['payout_1', 'payout_2'], true), page(['payout_3'], false)])
  const payouts = client.asOf({ id: 'payout_9' }).payouts({ limit: 2, repId: 'rep_1', periodId: 'period_1' })
  expect((await Array.fromAsync(payouts)).map(({ id }) => id)).toEqual(['payout_1', 'payout_2', 'payout_3'])
  const query = 'as_of=payout_9&limit=2'
  expect(asked.map(({ url }) => url)).toEqual([
    `/payouts?${query}&rep_id=rep_1&period_id=period_1`,
    `/payouts?${query}&starting_after=payout_2&rep_id=rep_1&period_id=period_1`,
  ])
  expect(asked[0]?.key).toBe('Bearer key_text')
})

test('records by ids are asked for a hundred at a time, each once, and on after an answer that was full', async () => {
  const ids = Array.from({ length: 130 }, (_, n) => `payout_${n}`)
  const { client, asked } = await clientOf([
    // No room for more, and the second id is unknown.
    page(['payout_0', 'payout_2'], true, ''),
    page(['payout_3'], false, ''),
    page(['payout_129'], false, ''),
  ])
  const found = client.asOf('payout_9').payouts({ ids: [...ids, 'payout_0'] })
  expect((await Array.fromAsync(found)).map(({ id }) => id)).toEqual(['payout_0', 'payout_2', 'payout_3', 'payout_129'])
  const queries = asked.map(({ url }) => Object.fromEntries(new URL(url, 'http://127.0.0.1').searchParams))
  const wanted = [ids.slice(0, 100), ids.slice(3, 103), ids.slice(103)]
  expect(queries).toEqual(wanted.map(some => ({ as_of: 'payout_9', ids: some.join() })))
  const nothing = await clientOf([page([], false, '')])
  expect(await Array.fromAsync(nothing.client.reps({ ids: [] }))).toEqual([])
  expect(nothing.asked).toEqual([])
  const endless = await clientOf([page([], true, '')])
  await expect(Array.fromAsync(endless.client.reps({ ids: ['rep_1'] }))).rejects.toThrow('has_more without a record')
})

test('ids are read without another filter, and a list is read whole without them', async () => {
  const { client, asked } = await clientOf([page(['payout_1'], false)])
  const ids = ['payout_1']
  // @ts-expect-error the types forbid it, too
  expect(() => client.payouts({ ids, repId: 'rep_1', periodId: undefined })).toThrow('ids are read without repId')
  // @ts-expect-error
  expect(() => client.payrollRecords({ ids, periodId: 'period_1', limit: 9 })).toThrow('without periodId and limit')
  // @ts-expect-error
  expect(() => client.reps({ ids, startingAfter: 'rep_1' })).toThrow('ids are read without startingAfter')
  expect(asked).toEqual([])
  // A program in JavaScript may have them beside ids, without a value.
  const options = { ids, repId: undefined, startingAfter: null } as unknown as { readonly ids: readonly string[] }
  expect(await Array.fromAsync(client.payouts(options))).toHaveLength(1)
  for await (const _ of client.payouts({ ids: undefined, repId: 'rep_1' }));
  expect(asked.map(({ url }) => url)).toEqual(['/payouts?ids=payout_1', '/payouts?limit=200&rep_id=rep_1'])
})

test('changes since an instant are those after the last change of that moment, or all if there was none', async () => {
  const totals = (last_change_id: string | null) => ok({ data: { last_change_id, totals: [] } })
  const since = '2026-02-01T08:30:00Z'
  const { client, asked } = await clientOf([totals('payout_5'), page(['payout_6'], true), page(['payout_7'], false)])
  const changes = client.changesSince(since, { repId: 'rep_1' })
  expect(asked).toEqual([])
  expect((await Array.fromAsync(changes)).map(({ id }) => id)).toEqual(['payout_6', 'payout_7'])
  expect(asked.map(({ url }) => decodeURIComponent(url))).toEqual([
    `/totals?as_of=${since}`,
    '/changes?limit=200&starting_after=payout_5&rep_id=rep_1',
    '/changes?limit=200&starting_after=payout_6&rep_id=rep_1',
  ])
  const before = await clientOf([totals(null), page(['payout_1'], false)])
  expect(await Array.fromAsync(before.client.changesSince(since))).toHaveLength(1)
  expect(before.asked[1]?.url).toBe('/changes?limit=200')
})

test('changes begin after a sequence, and go on after the cursor of each page', async () => {
  const { client, asked } = await clientOf([page(['payout_6'], true), page(['payout_7'], false)])
  const changes = await Array.fromAsync(client.changes({ after: 5, limit: 1, repId: 'rep_1' }))
  expect(changes.map(({ id }) => id)).toEqual(['payout_6', 'payout_7'])
  expect(asked.map(({ url }) => url)).toEqual([
    '/changes?limit=1&rep_id=rep_1&after=5',
    '/changes?limit=1&starting_after=payout_6&rep_id=rep_1',
  ])
  // The API refuses both together.
  const both = await clientOf([page([], false)])
  await Array.fromAsync(both.client.changes({ after: 5, startingAfter: 'payout_5' }))
  expect(both.asked[0]?.url).toBe('/changes?limit=200&starting_after=payout_5&after=5')
})

test('totals are those of a rep, of a period and of a moment', async () => {
  const { client, asked } = await clientOf([ok({ data: { last_change_id: null, totals: [] } })])
  await client.totals()
  await client.asOf('payout_9').totals({ repId: 'rep_1', periodId: 'period_1' })
  expect(asked.map(({ url }) => url)).toEqual(['/totals', '/totals?as_of=payout_9&rep_id=rep_1&period_id=period_1'])
})

test('the pages of a list have the cursor and the time of each, and say whether more follow', async () => {
  const { client } = await clientOf([page(['rep_1'], true), page([], false, 'rep_1')])
  const pages = await Array.fromAsync(client.reps().pages())
  const projectionTime = '2026-01-01T00:00:00Z'
  expect(pages).toEqual([
    { data: [{ id: 'rep_1' }], nextCursor: 'rep_1', hasMore: true, projectionTime },
    { data: [], nextCursor: 'rep_1', hasMore: false, projectionTime },
  ])
})

test('a list that would not end throws', async () => {
  const { client } = await clientOf([page(['rep_1'], true), page(['rep_1'], true)])
  await expect(Array.fromAsync(client.reps())).rejects.toThrow('has_more without a new next_cursor')
  const empty = await clientOf([page([], true)])
  await expect(Array.fromAsync(empty.client.reps())).rejects.toThrow('has_more without a new next_cursor')
})

test('429 and 503 are tried again after Retry-After', async () => {
  const { client, asked } = await clientOf([
    refused(429, 'rate_limited', { 'Retry-After': '0' }),
    refused(503, 'unavailable', { 'Retry-After': '1' }),
    ok({ data: { id: 'rep_1' } }),
  ])
  const began = performance.now()
  expect(await client.rep('rep_1')).toEqual({ id: 'rep_1' })
  expect(asked).toHaveLength(3)
  expect(performance.now() - began).toBeGreaterThan(990)
})

test.for([502, 504])('a proxy that answers %d is asked again, after Retry-After if it has one', async status => {
  const proxy = (headers: Readonly<Record<string, string>>): Answer => {
    return (_, response) => response.writeHead(status, headers).end('<html>no answer</html>')
  }
  const answers = [proxy({ 'Retry-After': '1' }), proxy({}), ok({ data: { id: 'rep_1' } })]
  const { client, asked } = await clientOf(answers)
  const began = performance.now()
  expect(await client.rep('rep_1')).toEqual({ id: 'rep_1' })
  expect(asked).toHaveLength(3)
  expect(performance.now() - began).toBeGreaterThan(1_240)
})

test('refusals without Retry-After are asked again with growing pauses', async () => {
  vi.spyOn(Math, 'random').mockReturnValue(0)
  onTestFinished(() => void vi.restoreAllMocks())
  const { client, asked, outcomeOf } = clockedClientOf(unavailable(), 1_700)
  await expect(outcomeOf(client.totals())).rejects.toMatchObject({ status: 503 })
  // The third pause would be 1 s.
  expect(asked).toEqual([0, 250, 750])
})

test('a connection that ends within an answer is tried again', async () => {
  const cut: Answer = (_, response) => {
    response.writeHead(200, { 'Content-Length': '1000' }).write('{"data":')
    setImmediate(() => response.destroy())
  }
  const { client, asked } = await clientOf([cut, ok({ data: { id: 'rep_1' } })])
  expect(await client.rep('rep_1')).toEqual({ id: 'rep_1' })
  expect(asked).toHaveLength(2)
})

/** An answer that ends early, and looks whole to the connection. A proxy of HTTP/1.0 can do this. */
const cutAt =
  (body: string, headers: Readonly<Record<string, string>> = {}): Answer =>
  (_, response) =>
    response.writeHead(200, headers).end(body)

test('an answer that a proxy cut at an inner end is tried again, and never kept', async () => {
  const whole = ok({ data: { id: 'rep_1' } }, { ETag: '"1"' })
  const { client, asked } = await clientOf([cutAt('{"data":{"id":"rep_1"}', { ETag: '"1"' }), whole])
  expect(await client.rep('rep_1')).toEqual({ id: 'rep_1' })
  expect(asked.map(({ tag }) => tag)).toEqual([undefined, undefined])
})

test('a page of another program instead of an answer is an error, not an empty list', async () => {
  const login = () => new Response('<html>Log in</html>', { headers: { 'Content-Type': 'text/html' } })
  const { client, outcomeOf } = clockedClientOf(login, 900)
  const reading = outcomeOf(Array.fromAsync(client.payouts()))
  await expect(reading).rejects.toThrow('the answer is no whole JSON (text/html)')
})

test('an answer that is not UTF-8 is an error: no name has other characters without one', async () => {
  const latin1 = () => new Response(Buffer.from('{"data":{"name":"Zoé"}}', 'latin1'))
  const { client, outcomeOf } = clockedClientOf(latin1, 900)
  const reading = outcomeOf(client.rep('rep_1'))
  await expect(reading).rejects.toThrow('the answer is no whole JSON (without a content type)')
})

test.each([
  ['a page without has_more', 200, { data: [{ id: 'rep_1' }], next_cursor: 'rep_1' }],
  ['a page without records', 200, { has_more: false, next_cursor: '' }],
  ['a page whose records are no list', 200, { data: { id: 'rep_1' }, has_more: false, next_cursor: '' }],
  ['another status than 200', 202, { data: [], has_more: false, next_cursor: '' }],
] as const)('%s is an error: the list does not end as if it were whole', async (_, status, body) => {
  const { client } = await clientOf([(__, response) => response.writeHead(status).end(JSON.stringify(body))])
  await expect(Array.fromAsync(client.reps())).rejects.toMatchObject({ name: 'RefusedError', status, code: 'unknown' })
})

test('a record is an error where the answer has none', async () => {
  const { client } = await clientOf([ok({ message: 'fine' })])
  await expect(client.payout('payout_1')).rejects.toMatchObject({ name: 'RefusedError', status: 200, code: 'unknown' })
})

test('a redirect is an error: no other host is asked, and none gets the key', async () => {
  const other = await clientOf([ok({ data: { id: 'rep_1' } })])
  await other.client.rep('rep_1')
  const elsewhere = `http://127.0.0.1:${other.port}/reps/rep_1`
  const { client, asked } = await clientOf([(_, response) => response.writeHead(302, { Location: elsewhere }).end()])
  await expect(client.rep('rep_1')).rejects.toMatchObject({ name: 'RefusedError', status: 302, code: 'unknown' })
  expect([asked.length, other.asked.length]).toEqual([1, 1])
})

test('a clock that is set back does not prolong a request', async () => {
  let now = Date.now()
  vi.spyOn(Date, 'now').mockImplementation(() => (now -= 60_000))
  onTestFinished(() => void vi.restoreAllMocks())
  const { client, outcomeOf } = clockedClientOf(unavailable({ 'Retry-After': '0' }), 1_000)
  await expect(outcomeOf(client.totals())).rejects.toMatchObject({ status: 503, code: 'unavailable' })
})

test('any other refusal is thrown at once, with its code and the id of the request', async () => {
  const { client, asked } = await clientOf([refused(404, 'not_found', { 'X-Request-Id': 'request_1' })])
  const refusal = await client.payout('payout_1').catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(RefusedError)
  expect(refusal).toMatchObject({ status: 404, code: 'not_found', requestId: 'request_1' })
  expect(asked).toHaveLength(1)
})

test('an answer of a proxy between, without a code, is a refusal, too', async () => {
  const bad = () => new Response('<html>Bad gateway</html>', { status: 502 })
  const { client, outcomeOf } = clockedClientOf(bad, 300)
  await expect(outcomeOf(client.payout('payout_1'))).rejects.toMatchObject({ status: 502, code: 'unknown' })
})

test.for([{ error: 'No.' }, { error: null }, { message: 'No.' }, [], 'No.'])(
  'a refusal of another form, %j, has the code unknown',
  async body => {
    const { client } = await clientOf([(_, response) => response.writeHead(403).end(JSON.stringify(body))])
    await expect(client.payout('payout_1')).rejects.toMatchObject({ status: 403, code: 'unknown' })
  },
)

test('the last refusal is thrown when the next attempt would be too late', async () => {
  const { client, asked, outcomeOf } = clockedClientOf(unavailable({ 'Retry-After': '30' }), 5_000)
  await expect(outcomeOf(client.totals())).rejects.toMatchObject({ status: 503, code: 'unavailable' })
  expect(asked).toEqual([0])
})

test('an answer that never comes ends with the time of the request', async () => {
  const { client } = await clientOf([() => undefined], { timeoutMs: 300 })
  await expect(client.totals()).rejects.toMatchObject({ name: 'TimeoutError' })
})

test('a Retry-After of 0 is no loop, and the refusal is thrown, not the end of the time', async () => {
  const { client, asked, outcomeOf } = clockedClientOf(unavailable({ 'Retry-After': '0' }), 1_600)
  await expect(outcomeOf(client.totals())).rejects.toMatchObject({ status: 503, code: 'unavailable' })
  expect(asked).toEqual([0, 500, 1_000, 1_500])
})

test('follow() yields changes as they come, waits, and pauses when it is answered early', async () => {
  const ended = new AbortController()
  const { client, asked } = await clientOf([page(['payout_1'], false), page([], false, 'payout_1')], {
    signal: ended.signal,
  })
  const seen: string[] = []
  const following = (async () => {
    for await (const { id } of client.follow({ repId: 'rep_1' })) seen.push(id)
  })()
  await expect.poll(() => asked.length).toBe(3)
  const [, second, third] = asked.map(({ at }) => at)
  expect((third ?? 0) - (second ?? 0)).toBeGreaterThan(990)
  ended.abort(new Error('enough'))
  await expect(following).rejects.toThrow('enough')
  expect(seen).toEqual(['payout_1'])
  expect(asked[1]?.url).toBe('/changes?limit=200&starting_after=payout_1&rep_id=rep_1&wait=30')
})

test('the signal ends a request and a wait', async () => {
  const ended = new AbortController()
  const { client, asked } = await clientOf([refused(503, 'unavailable', { 'Retry-After': '30' })], {
    signal: ended.signal,
  })
  const reading = client.totals()
  await expect.poll(() => asked.length).toBe(1)
  ended.abort(new Error('enough'))
  await expect(reading).rejects.toThrow('enough')
  await expect(client.totals()).rejects.toThrow('enough')
  expect(asked).toHaveLength(1)
})

test('an answer that has not changed is not sent again; its headers are the new ones', async () => {
  const unchanged: Answer = (_, response) =>
    response.writeHead(304, { ETag: '"1"', 'Projection-Time': '2026-01-02T00:00:00Z' }).end()
  const first = ok(
    { data: [{ id: 'rep_1' }], has_more: false, next_cursor: 'rep_1' },
    { ETag: '"1"', 'Projection-Time': '2026-01-01T00:00:00Z' },
  )
  const { client, asked } = await clientOf([first, unchanged])
  const times: string[] = []
  for (let turn = 0; turn < 3; turn++) {
    for await (const { data, projectionTime } of client.reps().pages()) {
      expect(data).toEqual([{ id: 'rep_1' }])
      times.push(projectionTime)
    }
  }
  expect(asked.map(({ tag }) => tag)).toEqual([undefined, '"1"', '"1"'])
  expect(times).toEqual(['2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z', '2026-01-02T00:00:00Z'])
})

test('an answer is parsed once, and a change of a record changes no kept answer', async () => {
  const body = { data: { id: 'rep_1', name: 'Whole' } }
  const unchanged: Answer = (_, response) => response.writeHead(304, { ETag: '"1"' }).end()
  const { client } = await clientOf([ok(body, { ETag: '"1"' }), unchanged])
  const parse = vi.spyOn(JSON, 'parse')
  onTestFinished(() => void vi.restoreAllMocks())
  for (let turn = 1; turn <= 2; turn++) {
    const rep = await client.rep('rep_1')
    expect(rep).toEqual(body.data)
    Object.assign(rep, { name: 'changed by the caller' })
    expect(parse.mock.calls.filter(([text]) => text.includes('Whole'))).toHaveLength(turn)
  }
})

test('kept answers have a limit: the ones used longest ago go first', async () => {
  const answer = ok({ data: { id: 'rep_1', name: 'x'.repeat(50) } }, { ETag: '"1"' })
  const { client, asked } = await clientOf([answer], { keptCharacters: 2_400 })
  for (const id of ['rep_1', 'rep_2', 'rep_3', 'rep_3', 'rep_1']) await client.rep(id)
  expect(asked.map(({ tag }) => tag)).toEqual([undefined, undefined, undefined, '"1"', undefined])
})

test.each([204, 205])('a %i of a proxy is refused at once', async status => {
  const { client, asked } = await clientOf([(_, response) => response.writeHead(status).end()])
  await expect(client.rep('rep_1')).rejects.toMatchObject({ name: 'RefusedError', status, code: 'unknown' })
  expect(asked).toHaveLength(1)
})

test('follow() with a short time for requests asks without a wait that would take longer', async () => {
  const seconds: (string | null)[] = []
  const waiting: Answer = (request, response) => {
    const wait = new URL(request.url ?? '', 'http://localhost').searchParams.get('wait')
    seconds.push(wait)
    setTimeout(() => page(['payout_1'], false)(request, response), 1_000 * Number(wait))
  }
  const { client } = await clientOf([waiting], { timeoutMs: 1_999 })
  for await (const { id } of client.follow()) {
    expect(id).toBe('payout_1')
    break
  }
  // On a busy machine a request may take longer, and the client asks again.
  expect(new Set(seconds)).toEqual(new Set(['0']))
})
