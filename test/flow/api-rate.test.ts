import { describe, expect, test } from 'vitest'
import { READS_IN_FLIGHT_MAX } from '../../core/store/limits.ts'
import type { SearchClient } from '../../core/store/read/search-client.ts'
import { newKeyText } from '../../tools/keys/key-text.ts'
import { listed, refusedWith, serveApi, useStore } from '../support/api.ts'
import { patient } from '../support/in-time.ts'
import { eventually, fileScope } from '../support/scope.ts'

const scope = fileScope()
const shared = (async () => {
  const store = await useStore(scope)
  store.payout('org_rate', 1, { id: 'payout_1' })
  await store.publish('org_rate', 2)
  const lines = (count: number, length: number) =>
    Array.from({ length: count }, (_, n) => ({ id: `line_${n}`, amount: '1', description: 'x'.repeat(length) }))
  for (let n = 0; n < 210; n++)
    store.payout('org_cost', n, { id: `payout_${n}`, period: `period_${n}`, lines: lines(6, 40) })
  store.payout('org_cost', 210, { id: 'payout_large', period: 'period_210', lines: lines(4_000, 900) })
  await store.publish('org_cost', 211)
  await store.publish('org_busy', 2)
  return store
})()
const left = (headers: Headers): number => Number(/r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1])

describe('the rate limit', () => {
  test('admits exactly the stated number of requests, even if they come at once', async () => {
    const store = await shared
    const key = await store.key('org_rate')
    const { ask } = await serveApi(scope, store.prefix, { rate: { requests: 20, windowSeconds: 3_600 } })
    const answers = await Promise.all(Array.from({ length: 50 }, () => ask('/payouts', key)))
    expect(answers.filter(({ status }) => status === 200).length).toBe(20)
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused.length).toBe(30)
    for (const answer of refused) {
      expect(refusedWith(answer).code).toBe('rate_limited')
      const retry = Number(answer.headers.get('retry-after'))
      expect(Number.isInteger(retry) && retry >= 1 && retry <= 3_600).toBe(true)
    }
  })

  test('counts every request of a key except a 304 to a known tag, and says how many are left', async () => {
    const store = await shared
    const key = await store.key('org_rate')
    const mute = await store.key('org_rate', { permissions: [] })
    const { ask } = await serveApi(scope, store.prefix, { rate: { requests: 10, windowSeconds: 3_600 } })
    const counted: [string, number][] = [
      ['/payouts', 200],
      ['/payouts/payout_9', 404],
      ['/nowhere', 404],
      ['/payouts?limit=0', 400],
      ['/payouts?starting_after=payout_9', 400],
    ]
    for (const [place, [path, status]] of counted.entries()) {
      const answer = await ask(path, key)
      expect([answer.status, left(answer.headers)]).toEqual([status, 9 - place])
      expect(answer.headers.get('ratelimit-policy')).toBe(
        '"default";q=10;w=3600;qu="requests";commission-unit-bytes=1048576, "concurrent";q=100;qu="concurrent-requests"',
      )
      expect(answer.headers.get('ratelimit')).toMatch(/^"default";r=\d+;t=\d+$/)
      expect([...answer.headers.keys()].filter(name => name.startsWith('x-ratelimit'))).toEqual([])
    }
    const post = await ask('/payouts', key, { method: 'POST' })
    expect([post.status, left(post.headers)]).toEqual([405, 4])
    const page = await ask('/payouts', key)
    expect(left(page.headers)).toBe(3)
    for (let again = 0; again < 20; again++) {
      const answer = await ask('/payouts', key, { headers: { 'if-none-match': page.headers.get('etag') ?? '' } })
      expect([answer.status, left(answer.headers)]).toEqual([304, 3])
    }
    const any = await ask('/payouts', key, { headers: { 'if-none-match': '*' } })
    expect([any.status, left(any.headers)]).toEqual([304, 2])
    const forbidden = await ask('/payouts', mute)
    expect([forbidden.status, left(forbidden.headers)]).toEqual([403, 9])
  })

  test('counts the cost of an answer: one for an ordinary page of 200, and one per started MiB of a large one', async () => {
    const store = await shared
    const key = await store.key('org_cost')
    const { ask } = await serveApi(scope, store.prefix, { rate: { requests: 20, windowSeconds: 3_600 } })
    const page = await ask('/payouts?limit=200', key)
    expect([page.status, listed(page).data.length, left(page.headers)]).toEqual([200, 200, 19])
    const large = await ask('/statements/payout_large', key)
    const cost = Math.ceil(large.text.length / 2 ** 20)
    expect(cost).toBeGreaterThan(3)
    expect([large.status, left(large.headers)]).toEqual([200, 19 - cost])
    // A client that already has the answer pays nothing.
    const known = { headers: { 'if-none-match': large.headers.get('etag') ?? '' } }
    expect(left((await ask('/statements/payout_large', key, known)).headers)).toBe(19 - cost)
    const again: number[] = []
    for (let time = 0; time < 20; time++) again.push((await ask('/payouts/payout_large', key)).status)
    expect(again.lastIndexOf(200)).toBeLessThan(6)
    expect(again.slice(6)).toEqual(again.slice(6).map(() => 429))
  })

  test('is separate for each key, even in one organization or with the same key id in two', async () => {
    const store = await shared
    const keys = [await store.key('org_rate'), await store.key('org_rate')]
    const { ask } = await serveApi(scope, store.prefix, { rate: { requests: 2, windowSeconds: 3_600 } })
    for (const key of keys)
      for (const status of [200, 200, 429]) expect((await ask('/payouts', key)).status).toBe(status)
  })

  test('does not count unauthenticated requests', async () => {
    const store = await shared
    const key = await store.key('org_rate')
    const { ask } = await serveApi(scope, store.prefix, { rate: { requests: 1, windowSeconds: 3_600 } })
    for (let n = 0; n < 5; n++) {
      expect((await ask('/payouts')).status).toBe(401)
      expect((await ask('/openapi.json', key)).status).toBe(200)
      expect((await ask('//nowhere', key)).status).toBe(404)
    }
    expect((await ask('/payouts', key)).status).toBe(200)
    expect((await ask('/payouts', key)).status).toBe(429)
  })

  test('admits a request after the seconds in Retry-After', async () => {
    const store = await shared
    const key = await store.key('org_rate')
    const { ask } = await serveApi(scope, store.prefix, { rate: { requests: 1, windowSeconds: 2 } })
    // At the same time, so that both are of one window on a busy machine, too.
    const both = await Promise.all([ask('/payouts', key), ask('/payouts', key)])
    const [admitted, refused] = both.toSorted((one, other) => one.status - other.status)
    const until = performance.now() + Number(refused?.headers.get('retry-after')) * 1_000
    expect([admitted?.status, refused?.status]).toEqual([200, 429])
    await eventually(() => expect(performance.now()).toBeGreaterThan(until))
    expect((await ask('/payouts', key)).status).toBe(200)
  })
})

describe('an address', () => {
  test('is not charged for requests without a key, with a malformed one or a wrong checksum: none is looked up', async () => {
    const store = await shared
    const key = await store.key('org_rate')
    const { between, lookUps } = countingReads()
    const { ask } = await serveApi(scope, store.prefix, { failuresPerAddress: 10, between })
    const made = newKeyText()
    const mistyped = `${made.slice(0, -1)}${made.endsWith('0') ? '1' : '0'}`
    for (const wrong of [undefined, 'short', 'x'.repeat(201), mistyped]) {
      const answers = await Promise.all(Array.from({ length: 100 }, () => ask('/payouts', wrong)))
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]))
    }
    const preflight = { method: 'OPTIONS', headers: { 'access-control-request-method': 'GET' } }
    for (let time = 0; time < 20; time++) expect((await ask('/payouts', undefined, preflight)).status).toBe(401)
    expect(lookUps()).toBe(0)
    expect((await ask('/payouts', key)).status).toBe(200)
  })

  test('that tried many unknown keys can still use valid keys, also new ones', async () => {
    const store = await shared
    const [known, unseen, other] = [
      await store.key('org_rate'),
      await store.key('org_rate'),
      await store.key('org_rate', { text: newKeyText() }),
    ]
    const { ask } = await serveApi(scope, store.prefix, { failuresPerAddress: 10 })
    expect((await ask('/payouts', known)).status).toBe(200)
    for (let time = 0; time < 30; time++) expect((await ask('/payouts', `${'x'.repeat(40)}${time}`)).status).toBe(401)
    for (const key of [known, unseen, other]) expect((await ask('/payouts', key)).status).toBe(200)
  })

  test('that tries thousands of keys at once takes few reads; only a full lane gives a 429, and other keys are served', async () => {
    const store = await shared
    const [known, unseen] = [await store.key('org_rate'), await store.key('org_rate')]
    let held: Promise<void> | undefined
    const { between, most } = countingReads(() => held)
    const api = await serveApi(scope, store.prefix, { failuresPerAddress: 30, between })
    const ask = patient(api)
    expect((await ask('/payouts', known)).status).toBe(200)
    const [firstRefusal, letGo] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const tryKey = async (n: number): Promise<{ code: string; retry: string | null }> => {
      const answer = await fetch(`http://127.0.0.1:${api.port}/api/v1/payouts`, {
        headers: { authorization: `Bearer ${'y'.repeat(40)}${n}` },
      })
      const code = ((await answer.json()) as { error: { code: string } }).error.code
      // On a busy machine the time of a request may be up before the lane is full.
      if (code === 'unavailable') return tryKey(n)
      if (code === 'rate_limited') firstRefusal.resolve()
      return { code, retry: answer.headers.get('retry-after') }
    }
    // The look-ups wait until the lane is full, however slowly the keys come.
    held = letGo.promise
    // Fewer at once than CONNECTIONS_MAX: the API closes further connections without an answer.
    const flood = Array.from({ length: 1_000 }, async (_, n) => [await tryKey(n), await tryKey(n + 1_000)])
    await Promise.race([firstRefusal.promise, Promise.all(flood)])
    letGo.resolve()
    const beside = await Promise.all(Array.from({ length: 20 }, () => ask('/payouts', known)))
    expect(new Set(beside.map(({ status }) => status))).toEqual(new Set([200]))
    const answers = (await Promise.all(flood)).flat()
    const refused = answers.filter(({ code }) => code === 'rate_limited')
    expect(new Set(answers.map(({ code }) => code))).toEqual(new Set(['unauthorized', 'rate_limited']))
    for (const { retry } of refused) expect(retry).toMatch(/^[1-9]\d*$/)
    expect(most()).toBeLessThanOrEqual(READS_IN_FLIGHT_MAX / 5)
    expect((await ask('/payouts', unseen)).status).toBe(200)
  })

  test('is that of the client if a trusted proxy forwards it', async () => {
    const store = await shared
    const none = { permits: 0, queue: 0, waitMax: 0 }
    const { ask } = await serveApi(scope, store.prefix, {
      failuresPerAddress: 1,
      trustedProxies: ['127.0.0.1'],
      shares: { keyLookupsExhausted: none },
    })
    const from = (address: string) => ({ headers: { 'x-forwarded-for': `10.0.0.1, ${address}` } })
    const wrong = (n: number) => `${'z'.repeat(40)}${n}`
    expect((await ask('/payouts', wrong(1), from('192.0.2.1'))).status).toBe(401)
    const refused = await ask('/payouts', wrong(2), from('192.0.2.1'))
    expect([refused.status, refusedWith(refused).code]).toEqual([429, 'rate_limited'])
    expect(refused.headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
    expect(refused.headers.get('ratelimit')).toBeNull()
    expect((await ask('/payouts', wrong(3), from('192.0.2.2'))).status).toBe(401)
  })
})

/** Counts the reads of Elasticsearch, and the largest number at once. @param until each read waits for it */
const countingReads = (until: () => Promise<void> | undefined = () => undefined) => {
  let lookUps = 0
  let now = 0
  let most = 0
  const counted =
    <Given extends unknown[], Result>(ask: (...given: Given) => Promise<Result>) =>
    async (...given: Given): Promise<Result> => {
      // Other reads may belong to the process itself.
      if (JSON.stringify(given[0]).includes('-api-keys')) lookUps++
      most = Math.max(most, ++now)
      let isOver = false
      const end = (): void => {
        if (!isOver) now--
        isOver = true
      }
      // A read that waits here ends with the time of its request.
      given.find(one => one instanceof AbortSignal)?.addEventListener('abort', end)
      await until()
      return ask(...given).finally(end)
    }
  const between = ({ search, multiGet, indexIds }: SearchClient): SearchClient => ({
    indexIds,
    search: counted(search),
    multiGet: counted(multiGet),
  })
  return { between, lookUps: () => lookUps, most: () => most }
}
