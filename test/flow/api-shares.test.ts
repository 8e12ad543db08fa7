/** How much of an API one key and one organization may use at once, so that others keep their share. */
import { connect, type Socket } from 'node:net'
import { describe, expect, inject, test } from 'vitest'
import { usualShares } from '../../api/access/permits.ts'
import { IN_FLIGHT_OF_KEY } from '../../api/limits.ts'
import { READS_OF_ORGANIZATION } from '../../core/reading/limits.ts'
import { ANSWERS_HELD_MAX, SMALL_ANSWER_BYTES, SMALL_ANSWERS_RESERVE } from '../../core/store/limits.ts'
import type { SearchClient } from '../../core/store/read/search-client.ts'
import { PAGE_BYTES_MAX } from '../../schemas/limits.ts'
import { type Answer, refusedWith, serveApi, useStore } from '../support/api.ts'
import { readSlowly, requestOf } from '../support/hostile-clients.ts'
import { patient } from '../support/in-time.ts'
import { startProxy } from '../support/proxy.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'

const scope = fileScope()
const [A, B, LARGE, SLOW, PAGES] = ['org_greedy', 'org_other', 'org_large', 'org_slow', 'org_pages']
const shared = (async () => {
  const store = await useStore(scope)
  for (const org of [A, B]) {
    for (let n = 0; n < 60; n++) store.payout(org, n, { id: `payout_${n}`, period: `period_${n}` })
    store.rep(org, 'rep_1', [{ seq: 60, name: 'Ada' }])
  }
  const description = 'x'.repeat(1_000)
  const lines = Array.from({ length: 7_000 }, (_, n) => ({ id: `line_${n}`, amount: '0', description }))
  store.payout(LARGE, 0, { id: 'payout_0', lines })
  await store.publish(LARGE, 1)
  for (const org of [SLOW, PAGES]) {
    for (let n = 0; n < 20; n++) {
      store.payout(org, n, { id: `payout_${n}`, period: `period_${n}`, lines: lines.slice(0, 1_000) })
      await store.flush()
    }
    for (let n = 20; n < 25; n++) {
      store.payout(org, n, { id: `payout_${n}`, period: `period_${n}`, lines: lines.slice(0, 300) })
    }
    await store.publish(org, 25)
  }
  // Organizations may share a partition: the highest position comes last.
  for (const org of [A, B]) await store.publish(org, 61)
  return store
})()

const statuses = (answers: readonly Answer[]): Record<number, number> => {
  const counts: Record<number, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

test('an organization with hundreds of slow lists leaves reads to others: they get no 503', async (test: Scope) => {
  const store = await shared
  const slow = await startProxy(test, inject('elasticsearchUrl').replace('http://', ''))
  // From a flood on, searches wait until one of its requests is refused.
  let above = Promise.withResolvers<void>()
  above.resolve()
  const between = (real: SearchClient): SearchClient => ({
    ...real,
    search: (...given) => above.promise.then(() => real.search(...given)),
  })
  const api = await serveApi(test, store.prefix, { url: `http://${slow.address}`, between })
  const { ask, usage } = api
  const keys = [await store.key(A), await store.key(A), await store.key(A)]
  const other = await store.key(B)
  for (const key of [...keys, other]) expect((await patient(api)('/payouts', key)).status).toBe(200)
  await slow.inject({ kind: 'latency', milliseconds: 400 }, line => line.includes('_search'))
  const flood = async (): Promise<Answer[]> => {
    above = Promise.withResolvers()
    const askOne = async (n: number): Promise<Answer> => {
      const answer = await ask('/payouts?limit=50', keys[n % 3])
      if (answer.status !== 200) above.resolve()
      return answer
    }
    const answers = await Promise.all(Array.from({ length: 260 }, (_, n) => askOne(n)))
    above.resolve()
    return answers.filter(({ status }) => status !== 200)
  }
  const greedy = (async () => {
    const refused = await flood()
    while (new Set(refused.map(({ status }) => status)).size < 2) refused.push(...(await flood()))
    return refused
  })()
  await eventually(() => expect(usage().reads.held).toBe(READS_OF_ORGANIZATION.permits), { every: 1 })
  const answers = await Promise.all(Array.from({ length: 10 }, () => patient(api)('/payouts?limit=50', other)))
  expect(statuses(answers)).toEqual({ 200: 10 })
  const refused = await greedy
  expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([429, 503]))
  for (const { headers } of refused) expect(headers.get('retry-after')).toMatch(/^[1-3]$/)
  await slow.heal()
  expect(statuses(await Promise.all(keys.map(key => patient(api)('/payouts', key))))).toEqual({ 200: 3 })
  await eventually(() => expect(usage()).toMatchObject({ requests: { held: 0 }, reads: { held: 0, waiting: 0 } }))
})

test('an organization whose clients take no byte of their answers leaves others room for large answers', async (test: Scope) => {
  const store = await shared
  const api = await serveApi(test, store.prefix)
  const { port, budget, usage } = api
  const keys = [await store.key(SLOW), await store.key(SLOW)]
  const other = await store.key(PAGES)
  const takeNothing = (_: unknown, n: number) =>
    readSlowly(test, { port, request: requestOf('/payouts?limit=200', keys[n % 2] ?? ''), bytesPerSecond: 0 })
  let readers = Array.from({ length: 12 }, takeNothing)
  // Two pages of nearly 16 MiB are in delivery, and nothing is read.
  await eventually(() => {
    // On a busy machine the time of one may be up: until there are two, those that were refused ask again.
    if (budget.held() <= 1.75 * PAGE_BYTES_MAX)
      readers = readers.map((reader, n) => (reader.firstLine().includes(' 503 ') ? takeNothing(reader, n) : reader))
    expect(budget.held()).toBeGreaterThan(1.75 * PAGE_BYTES_MAX)
    expect(usage()).toMatchObject({ reads: { held: 0, waiting: 0 }, large_answers: { held: 0, waiting: 0 } })
  })
  for (const path of [
    '/payouts?limit=200',
    '/changes?limit=200',
    '/statements/payout_0',
    '/payouts/payout_0/history',
  ]) {
    const answer = await patient(api)(path, other)
    expect([path, answer.status]).toEqual([path, 200])
    expect(answer.text.length).toBeGreaterThan(SMALL_ANSWER_BYTES)
  }
})

describe('while a process has little room, a large record refuses only its own request: of another organization', () => {
  const LITTLE = 2 * SMALL_ANSWER_BYTES
  const setUp = async (test: Scope) => {
    const store = await shared
    const api = await serveApi(test, store.prefix)
    const { ask, budget } = api
    const [large, other] = [await store.key(LARGE), await store.key(B)]
    const askOther = (path: string) => patient(api)(path, other)
    /** Requests the large record, which has 7 MB. */
    const askLarge = () => Promise.all(Array.from({ length: 3 }, () => ask('/payouts/payout_0', large)))
    for (const key of [large, other]) expect((await patient(api)('/payouts?limit=1', key)).status).toBe(200)
    budget.open(undefined).add(ANSWERS_HELD_MAX - SMALL_ANSWERS_RESERVE - LITTLE)
    return { askOther, askLarge, budget }
  }
  const cursor = (n: number) => `/payouts?limit=1&starting_after=payout_${n}`
  test.each([
    ['pages', () => '/payouts?limit=1'],
    // Each cursor is new to this process, so its record is read.
    ['pages after a cursor', cursor],
    ['payouts', (n: number) => `/payouts/payout_${n % 60}`],
    ['statements', (n: number) => `/statements/payout_${n % 60}`],
    ['reps', () => '/reps/rep_1'],
  ])('no %s', async (_, path) => {
    const { askOther, askLarge } = await setUp(scope)
    let n = 0
    for (let round = 0; round < 5; round++) {
      const refused = askLarge()
      const answered = Array.from({ length: 10 }, () => askOther(path(n++)))
      expect(statuses(await Promise.all(answered))).toEqual({ 200: 10 })
      expect(statuses(await refused)).toEqual({ 503: 3 })
    }
  })
})

describe('concurrent requests', () => {
  const three = { permits: 3, queue: 0, waitMax: 0 }
  const few = { inFlightOfKey: three, inFlightOfOrganization: { ...three, permits: 5 } }

  test('are limited per key and per organization; one more gets a 429 with Retry-After at once, and is counted', async (test: Scope) => {
    const store = await shared
    const held = holding()
    const { ask, usage } = await serveApi(test, store.prefix, { between: held.between, shares: few })
    const [first, second, other] = [await store.key(A), await store.key(A), await store.key(B)]
    const running = [first, first, first, second, second].map(key => ask('/payouts', key))
    await eventually(() => expect(held.count()).toBe(5), { every: 1 })
    for (const [key, because] of [
      [first, 'under_way_of_key'],
      [second, 'under_way_of_organization'],
    ]) {
      const refused = await ask('/payouts', key)
      expect([refused.status, refusedWith(refused).code, because]).toEqual([429, 'rate_limited', because])
      expect(refused.headers.get('retry-after')).toMatch(/^[1-3]$/)
      expect(refused.headers.get('ratelimit')).toMatch(/^"default";r=\d+;t=\d+$/)
    }
    const beside = ask('/payouts', other)
    await eventually(() => expect(held.count()).toBe(6), { every: 1 })
    held.go()
    expect(statuses(await Promise.all([...running, beside]))).toEqual({ 200: 6 })
    await eventually(() => expect(usage().requests.held).toBe(0), { every: 1 })
    expect((await ask('/payouts', first)).status).toBe(200)
  })

  test('with If-None-Match: * are counted and limited like any other', async (test: Scope) => {
    const store = await shared
    const key = await store.key(A)
    const { ask } = await serveApi(test, store.prefix, { rate: { requests: 300, windowSeconds: 3_600 } })
    const any = { headers: { 'if-none-match': '*' } }
    const answers: Answer[] = []
    // As many as the organization may read at once: others would wait for a permit, on a slow machine too long.
    const atOnce = READS_OF_ORGANIZATION.permits
    for (let round = 0; round < 10; round++) {
      answers.push(...(await Promise.all(Array.from({ length: atOnce }, () => ask('/payouts', key, any)))))
    }
    const { 304: unmodified = 0, 503: late = 0, ...others } = statuses(answers)
    // On a busy machine the time of some is up. They count, too.
    expect([unmodified + late, others]).toEqual([300, { 429: 10 * atOnce - 300 }])
    expect(unmodified).toBeGreaterThan(0)
  })

  test('are counted until their client has the answer or has left, and not only until the answer is ready', async (test: Scope) => {
    const store = await shared
    const key = await store.key(LARGE)
    const api = await serveApi(test, store.prefix, { shares: few })
    const { ask, port, usage } = api
    /** Takes the first bytes of its answer only. On a busy machine it may have to ask again. */
    const occupy = (): Promise<Socket> =>
      new Promise(resolve => {
        const socket = connect(port, '127.0.0.1').setEncoding('latin1')
        socket
          .on('error', () => undefined)
          .on('data', (text: string) => {
            if (text.startsWith('HTTP/1.1 503')) return void socket.write(requestOf('/payouts/payout_0', key))
            if (text.startsWith('HTTP/1.1 200')) resolve(socket.pause())
          })
        socket.write(requestOf('/payouts/payout_0', key))
      })
    const sockets = await Promise.all([occupy(), occupy(), occupy()])
    // All answers are ready, so no read is running.
    await eventually(() => expect(usage()).toMatchObject({ requests: { held: 3 }, reads: { held: 0 } }))
    expect((await ask('/payouts/payout_0', key)).status).toBe(429)
    expect(usage().requests.held).toBe(3)
    for (const socket of sockets) socket.destroy()
    await eventually(() => expect(usage().requests.held).toBe(0))
    expect((await patient(api)('/payouts/payout_0', key)).status).toBe(200)
  })

  test('of clients that leave at any time are all given back', async (test: Scope) => {
    const store = await shared
    const key = await store.key(LARGE)
    const { port, usage, ask } = await serveApi(test, store.prefix)
    const request = `GET /api/v1/payouts/payout_0 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`
    await Promise.all(
      Array.from({ length: 60 }, async (_, n) => {
        const socket = connect(port, '127.0.0.1')
        socket.on('error', () => undefined)
        // Some send pipelined requests.
        socket.write(request.repeat(1 + (n % 3)))
        if (n % 2 === 0) await new Promise(resolve => socket.once('data', resolve))
        else for (let turn = 0; turn < n; turn++) await new Promise(setImmediate)
        socket.destroy()
      }),
    )
    await eventually(() =>
      expect(usage()).toMatchObject({ requests: { held: 0, waiting: 0 }, reads: { held: 0, waiting: 0 } }),
    )
    expect((await ask('/payouts/payout_0', key)).status).toBe(200)
  })
})

test('one client may have enough concurrent requests to keep Elasticsearch busy, and all of them are answered', async (test: Scope) => {
  const store = await shared
  // Requests may wait for their turn longer than in a process: a busy machine is slow.
  const readsOfOrganization = { ...usualShares.readsOfOrganization, waitMax: 60_000 }
  const api = await serveApi(test, store.prefix, { shares: { readsOfOrganization } })
  const key = await store.key(B)
  expect(IN_FLIGHT_OF_KEY).toBe(usualShares.inFlightOfKey)
  const answers = await Promise.all(
    Array.from({ length: IN_FLIGHT_OF_KEY.permits }, () => patient(api)('/payouts?limit=1', key)),
  )
  expect(statuses(answers)).toEqual({ 200: IN_FLIGHT_OF_KEY.permits })
})

/** Searches that wait until the test lets them run. */
const holding = () => {
  const gate = Promise.withResolvers<void>()
  let count = 0
  const between = (real: SearchClient): SearchClient => ({
    ...real,
    search: async (...given) => {
      count++
      await gate.promise
      return real.search(...given)
    },
  })
  return { between, count: () => count, go: gate.resolve }
}
