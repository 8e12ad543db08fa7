/** Requests that wait for the next change. */
import { connect, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { WAITS_OF_ORGANIZATION } from '../../api/limits.ts'
import { unavailable } from '../../core/runtime/refusals.ts'
import { partitionOf } from '../../schemas/partition.ts'
import { type Answer, listed, refusedWith, serveApi, useStore } from '../support/api.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'

const PARTITIONS = 6
const org = 'org_wait'
/** Another organization of the same partition. */
const other = `org_${Array.from({ length: 100 }, (_, n) => n).find(n => partitionOf(`org_${n}`, PARTITIONS) === partitionOf(org, PARTITIONS))}`
const scope = fileScope()

/** An API with one change of an organization, and counters of its reads. */
const setUp = async (t: Scope) => {
  const store = await useStore(t)
  store.payout(org, 0, { id: 'payout_1' })
  await store.publish(org, 1)
  const key = await store.key(org)
  const reads = { searches: 0, multiGets: 0 }
  const state = { isAway: false }
  const api = await serveApi(t, store.prefix, {
    between: elasticsearch => ({
      ...elasticsearch,
      search: (...parameters) => {
        reads.searches++
        return state.isAway
          ? Promise.reject(unavailable('elasticsearch_connection'))
          : elasticsearch.search(...parameters)
      },
      multiGet: (...parameters) => {
        reads.multiGets++
        return state.isAway
          ? Promise.reject(unavailable('elasticsearch_connection'))
          : elasticsearch.multiGet(...parameters)
      },
    }),
  })
  let seq = 1
  /** Publishes a payout. */
  const change = async (
    of: string,
    more: { readonly rep?: string; readonly period?: string } = {},
  ): Promise<string> => {
    const id = `payout_${seq + 1}`
    store.payout(of, seq, { id, ...more })
    // A projector makes documents searchable before it publishes their position.
    await store.flush()
    await store.publish(of, ++seq)
    return id
  }
  const ask = (query: string): Promise<Answer> => api.ask(`/changes?${query}`, key)
  const untilWaiting = (count = 1) =>
    eventually(() => expect(api.usage().waits_for_changes.waiting).toBe(count), { every: 5 })
  const ids = (answer: Answer): unknown[] => {
    expect(answer.status, answer.text).toBe(200)
    return listed(answer).data.map(({ id }) => id)
  }
  return { store, key, api, reads, state, change, ask, untilWaiting, ids }
}

const shared = setUp(scope)

test('a request with something behind its cursor is answered at once', async t => {
  const { ask, ids, api } = await setUp(t)
  const began = performance.now()
  expect(ids(await ask('wait=60'))).toEqual(['payout_1'])
  expect(performance.now() - began).toBeLessThan(30_000)
  expect(api.usage().waits_for_changes.waiting).toBe(0)
})

test('a request with nothing behind its cursor is answered with the next change', async t => {
  const { ask, ids, change, untilWaiting } = await setUp(t)
  for (const after of ['payout_1', 'payout_2', 'payout_3']) {
    const waiting = ask(`wait=60&starting_after=${after}`)
    await untilWaiting()
    const id = await change(org)
    expect(ids(await waiting)).toEqual([id])
  }
})

test('when the time is up, the page is empty, and the same cursor can wait again without a read of its own', async t => {
  const { ask, reads, store } = await setUp(t)
  const first = await ask('wait=1&starting_after=payout_1')
  expect(listed(first)).toEqual({ data: [], has_more: false, next_cursor: 'payout_1' })
  let time = 1_700_000_005_000
  // On a busy machine the last look may be too old when the time is up: then the page is read.
  const again = await eventually(async () => {
    await store.publish(org, 1, ++time)
    const searches = reads.searches
    const answer = await ask('wait=1&starting_after=payout_1')
    expect(reads.searches).toBe(searches)
    // The time is that of the last look, not of an earlier wait.
    expect(answer.headers.get('Projection-Time')).toBe(new Date(time).toISOString())
    return answer
  })
  expect(again.text).toBe(first.text)
  // The tag is that of the same page without a wait.
  expect((await ask('starting_after=payout_1')).headers.get('ETag')).toBe(again.headers.get('ETag'))
})

test('a change of another organization of the same partition ends no wait', async t => {
  const { ask, ids, change, untilWaiting } = await setUp(t)
  const short = ask('wait=10&starting_after=payout_1')
  const long = ask('wait=60&starting_after=payout_1')
  await untilWaiting(2)
  await change(other)
  expect(ids(await short)).toEqual([])
  await untilWaiting(1)
  const id = await change(org)
  expect(ids(await long)).toEqual([id])
})

test('a change that the filter leaves out ends no wait', async t => {
  const { ask, ids, change, untilWaiting } = await setUp(t)
  const ofRep = ask('wait=60&rep_id=rep_7')
  const ofPeriod = ask('wait=10&rep_id=rep_7&period_id=period_9')
  await untilWaiting(2)
  await change(org)
  await change(org, { rep: 'rep_8', period: 'period_9' })
  const wanted = await change(org, { rep: 'rep_7' })
  expect(ids(await ofRep)).toEqual([wanted])
  expect(ids(await ofPeriod)).toEqual([])
})

const WAIT = '/changes?wait=60&starting_after=payout_1'
const leaving = {
  closes: (socket: Socket) => void socket.destroy(),
  'closes its side': (socket: Socket) => void socket.end(),
  resets: (socket: Socket) => void socket.resetAndDestroy(),
}
const waysToLeave = Object.keys(leaving) as (keyof typeof leaving)[]
const get = (key: string, headers: readonly string[] = []): string =>
  [`GET /api/v1${WAIT} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${key}`, ...headers, '', ''].join('\r\n')

test.each(
  [
    ['a request', (key: string) => get(key)],
    ['an incomplete body', (key: string) => `${get(key, ['Content-Length: 10'])}abc`],
    ['an incomplete body of 60 KB', (key: string) => get(key, ['Content-Length: 65000']) + 'x'.repeat(60_000)],
    ['an endless body', (key: string) => `${get(key, ['Transfer-Encoding: chunked'])}fffff\r\n${'x'.repeat(300_000)}`],
    ['half a request behind it', (key: string) => `${get(key)}GET / HTT`],
    ['a POST behind it', (key: string) => `${get(key)}POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab`],
    ['many requests behind it', (key: string) => get(key).repeat(20)],
    ['CONNECT behind it', (key: string) => `${get(key)}CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n`],
  ].flatMap(([name, bytes]) => waysToLeave.map(how => [name, how, bytes] as const)),
)('a wait ends with its client: after %s it %s', async (_, how, bytes) => {
  const { api, key } = await shared
  const before = api.usage().requests.held
  const sockets = Array.from({ length: 5 }, () => {
    const socket = connect(api.port, '127.0.0.1').on('error', () => undefined)
    socket.write((bytes as (key: string) => string)(key))
    return socket
  })
  await eventually(() => expect(sockets.every(({ bytesWritten }) => bytesWritten > 0)).toBe(true))
  // Some of them wait, and those with further bytes are answered.
  await new Promise(resolve => setTimeout(resolve, 200))
  for (const socket of sockets) leaving[how](socket)
  await eventually(
    () => expect(api.usage()).toMatchObject({ requests: { held: before }, waits_for_changes: { waiting: 0 } }),
    { within: 8_000 },
  )
})

test('a request with more bytes behind it does not wait: its page comes at once, and then the other answer', async () => {
  const { api, key } = await shared
  const began = performance.now()
  const text = await api.send(`${get(key)}no request\r\n\r\n`)
  expect(performance.now() - began).toBeLessThan(30_000)
  expect(text.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400'])
})

test('above the waits of an organization an empty page comes at once, and costs a unit', async t => {
  const { store, key } = await setUp(t)
  const waits = { permits: 3, queue: 0, waitMax: 0 }
  const api = await serveApi(t, store.prefix, { shares: { waits } })
  const waiting = Array.from({ length: 3 }, () => api.ask(WAIT, key))
  await eventually(() => expect(api.usage().waits_for_changes.waiting).toBe(3), { every: 5 })
  const leftOf = (answer: Answer) => Number(/r=(\d+)/.exec(answer.headers.get('RateLimit') ?? '')?.[1])
  const before = leftOf(await api.ask('/changes?limit=1', key))
  const above = await api.ask(WAIT, key)
  expect([above.status, listed(above)]).toEqual([200, { data: [], has_more: false, next_cursor: 'payout_1' }])
  const again = await api.ask(WAIT, key, { headers: { 'if-none-match': above.headers.get('etag') ?? '' } })
  expect([again.status, before - leftOf(again)]).toEqual([304, 2])
  api.endWaits()
  for (const answer of await Promise.all(waiting)) expect(answer.status).toBe(200)
})

test('Projection-Time does not go back when a wait ends after another answer', async t => {
  const { store, ask, untilWaiting } = await setUp(t)
  const times: string[] = []
  const keep = (answer: Answer): void => void times.push(answer.headers.get('Projection-Time') ?? '')
  const waits = Array.from({ length: 5 }, (_, n) => ask(`wait=${10 + n}&starting_after=payout_1`).then(keep))
  await untilWaiting(5)
  let time = 1_700_000_010_000
  let isOver = false
  const reading = (async () => {
    while (!isOver) {
      await store.publish(org, 1, time++)
      keep(await ask('limit=1'))
    }
  })()
  await Promise.all(waits)
  isOver = true
  await reading
  expect(times).toEqual(times.toSorted())
})

test('one search for an organization serves the filters of all who wait', async t => {
  const { api, change, ask, ids, reads, untilWaiting } = await setUp(t)
  const REPS = 30
  const waiting = Array.from({ length: REPS }, (_, n) => ask(`wait=60&starting_after=payout_1&rep_id=rep_${100 + n}`))
  const ofPeriod = ask('wait=60&starting_after=payout_1&period_id=period_7')
  await untilWaiting(REPS + 1)
  const searches = reads.searches
  const began = performance.now()
  await change(org, { rep: 'rep_99' })
  await change(org, { rep: 'rep_99' })
  const first = await change(org, { rep: 'rep_107' })
  expect(ids(await (waiting[7] ?? ofPeriod))).toEqual([first])
  const second = await change(org, { period: 'period_7' })
  expect(ids(await ofPeriod)).toEqual([second])
  // Of each half second: one for all organizations, one for all filters. And the two pages.
  const halfSeconds = (performance.now() - began) / 500
  expect(reads.searches - searches).toBeLessThan(4 * halfSeconds + 10)
  await untilWaiting(REPS - 1)
  api.endWaits()
  await Promise.all(waiting)
})

test('all who wait share one look, and a request that leaves is forgotten', async t => {
  const { api, key, reads, untilWaiting, change, ask, ids } = await setUp(t)
  const sockets = Array.from({ length: WAITS_OF_ORGANIZATION.permits }, () => {
    const socket = connect(api.port, '127.0.0.1')
    socket.write(
      `GET /api/v1/changes?wait=60&starting_after=payout_1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`,
    )
    return socket
  })
  await untilWaiting(WAITS_OF_ORGANIZATION.permits)
  const before = { ...reads }
  const began = performance.now()
  await eventually(() => expect(reads.multiGets - before.multiGets).toBeGreaterThanOrEqual(20))
  const seconds = (performance.now() - began) / 1_000
  expect((reads.multiGets - before.multiGets) / seconds).toBeLessThan(30)
  expect(reads.searches).toBe(before.searches)
  for (const socket of sockets) socket.destroy()
  await untilWaiting(0)
  const { multiGets } = reads
  // Nobody waits: after the look under way there is none, so that only these two requests read.
  const waiting = ask('wait=60&starting_after=payout_1')
  await untilWaiting()
  const id = await change(org)
  expect(ids(await waiting)).toEqual([id])
  expect(reads.multiGets).toBeGreaterThan(multiGets)
})

test('a waiting request counts once, as one request', async t => {
  const { ask } = await setUp(t)
  const before = Number(/r=(\d+)/.exec((await ask('')).headers.get('RateLimit') ?? '')?.[1])
  const after = Number(
    /r=(\d+)/.exec((await ask('wait=1&starting_after=payout_1')).headers.get('RateLimit') ?? '')?.[1],
  )
  expect(before - after).toBe(1)
})

test('the units left in the answer of a request that waited are those of the end of its wait', async t => {
  const { ask, ids, change, untilWaiting } = await setUp(t)
  const leftOf = (answer: Answer) => Number(/r=(\d+)/.exec(answer.headers.get('RateLimit') ?? '')?.[1])
  const waiting = ask('wait=60&starting_after=payout_1')
  await untilWaiting()
  const others = [await ask(''), await ask(''), await ask('')]
  const id = await change(org)
  const answer = await waiting
  expect(ids(answer)).toEqual([id])
  expect(leftOf(answer)).toBe(Math.min(...others.map(leftOf)))
})

test('after a wait over the end of its window, a request has all units of the next one left', async t => {
  const { store, key } = await setUp(t)
  const api = await serveApi(t, store.prefix, { rate: { requests: 50, windowSeconds: 1 } })
  const answer = await api.ask('/changes?wait=3&starting_after=payout_1', key)
  expect([answer.status, answer.headers.get('RateLimit')]).toEqual([200, '"default";r=50;t=1'])
})

test('a key that is revoked while its request waits gets no page', async t => {
  const { store, ask, key, change, untilWaiting } = await setUp(t)
  const waiting = ask('wait=60&starting_after=payout_1')
  await untilWaiting()
  await store.key(org, { text: key, revoked: true })
  // Longer than a looked-up key is cached.
  await eventually(async () => expect((await ask('limit=1')).status).toBe(401))
  await change(org)
  expect((await waiting).status).toBe(401)
})

test('while Elasticsearch is away, a request waits on; when its time is up, it gets 503', async t => {
  const { ask, ids, state, change, untilWaiting } = await setUp(t)
  const short = ask('wait=10&starting_after=payout_1')
  const long = ask('wait=60&starting_after=payout_1')
  await untilWaiting(2)
  state.isAway = true
  expect((await short).status).toBe(503)
  state.isAway = false
  const id = await change(org)
  expect(ids(await long)).toEqual([id])
})

test('a new live generation ends all waits: its rules may have changed the past', async t => {
  const { store, ask, ids, untilWaiting } = await setUp(t)
  const waiting = ask('wait=60&starting_after=payout_1')
  await untilWaiting()
  const next = await useStore(t, { prefix: store.prefix, generation: 'g2' })
  next.payout(org, 0, { id: 'payout_1' })
  await next.publish(org, 1)
  await next.makeLive()
  expect(ids(await waiting)).toEqual([])
})

test('a partition that is not served delays no wait of another partition', async t => {
  const { store, ask, ids, change, untilWaiting } = await setUp(t)
  const neighbour = (partitionOf(org, PARTITIONS) + 1) % PARTITIONS
  store.putPosition('g1', neighbour, 5, 1_700_000_000_000, 100)
  await store.flush()
  const waiting = ask('wait=60&starting_after=payout_1')
  await untilWaiting()
  const id = await change(org)
  const began = performance.now()
  expect(ids(await waiting)).toEqual([id])
  expect(performance.now() - began).toBeLessThan(30_000)
})

test('a request that did not wait costs a unit, also with an entity tag', async t => {
  const { api, key, ask } = await setUp(t)
  api.endWaits()
  const path = '/changes?wait=60&starting_after=payout_1'
  const tag = (await api.ask(path, key)).headers.get('etag') ?? ''
  const leftOf = (answer: Answer) => Number(/r=(\d+)/.exec(answer.headers.get('RateLimit') ?? '')?.[1])
  const before = leftOf(await ask(''))
  const again = await api.ask(path, key, { headers: { 'if-none-match': tag } })
  expect([again.status, before - leftOf(again)]).toEqual([304, 1])
  expect(before - leftOf(await ask(''))).toBe(2)
})

test('when the process stops, all waits end at once, and later ones do not begin', async t => {
  const { ask, ids, api, untilWaiting } = await setUp(t)
  const waiting = [ask('wait=60&starting_after=payout_1'), ask('wait=60&starting_after=payout_1&limit=3')]
  await untilWaiting(2)
  api.endWaits()
  for (const answer of await Promise.all(waiting)) expect(ids(answer)).toEqual([])
  expect(ids(await ask('wait=60&starting_after=payout_1'))).toEqual([])
})

describe('the parameter', () => {
  test.each([
    ['wait=', '`wait` must be a whole number of seconds, in digits.'],
    ['wait=-1', '`wait` must be a whole number of seconds, in digits.'],
    ['wait=1.5', '`wait` must be a whole number of seconds, in digits.'],
    ['wait=1e1', '`wait` must be a whole number of seconds, in digits.'],
    ['wait=1&wait=2', 'The parameter `wait` is given more than once.'],
    ['wait=1&as_of=payout_1', '`wait` and `as_of` cannot be combined: an earlier moment gets no new changes.'],
  ])('%s is refused', async (query, message) => {
    const { ask } = await shared
    const answer = await ask(query)
    expect([answer.status, refusedWith(answer)]).toEqual([400, { code: 'invalid_request', message }])
  })

  test('wait=0 does not wait; a cursor that is unknown is refused at once', async () => {
    const { ask, ids } = await shared
    expect(ids(await ask('wait=0&starting_after=payout_1'))).toEqual([])
    const unknown = await ask('wait=60&starting_after=payout_unknown')
    expect([unknown.status, refusedWith(unknown).code]).toEqual([400, 'invalid_cursor'])
  })

  test('no other list has it', async () => {
    const { api, key } = await shared
    const answer = await api.ask('/payouts?wait=1', key)
    expect(refusedWith(answer)).toEqual({ code: 'invalid_request', message: 'Unknown query parameter `wait`.' })
  })
})
