import { describe, expect, test } from 'vitest'
import { refusedWith, serveApi, useStore } from '../support/api.ts'
import { eventually, fileScope } from '../support/scope.ts'

const scope = fileScope()
const shared = (async () => {
  const store = await useStore(scope)
  store.payout('org_rate', 1, { id: 'payout_1' })
  await store.publish('org_rate', 2)
  await store.publish('org_busy', 2)
  return store
})()
const left = (headers: Headers): number => Number(/r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1])

describe('the rate limit', () => {
  test('lets exactly as many requests through as it says, also when they come at once', async () => {
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

  test('counts every request of a key but a 304, and says what is left', async () => {
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
      expect(answer.headers.get('ratelimit-policy')).toBe('"default";q=10;w=3600')
      expect(answer.headers.get('ratelimit')).toMatch(/^"default";r=\d+;t=\d+$/)
      expect([...answer.headers.keys()].filter(name => name.startsWith('x-ratelimit'))).toEqual([])
    }
    const post = await ask('/payouts', key, { method: 'POST' })
    expect([post.status, left(post.headers)]).toEqual([405, 4])
    for (let again = 0; again < 20; again++) {
      const answer = await ask('/payouts', key, { headers: { 'if-none-match': '*' } })
      expect([answer.status, left(answer.headers)]).toEqual([304, 4])
    }
    expect(left((await ask('/payouts', key)).headers)).toBe(3)
    const forbidden = await ask('/payouts', mute)
    expect([forbidden.status, left(forbidden.headers)]).toEqual([403, 9])
  })

  test('is each key’s own, also of one organization and of the same key id in two', async () => {
    const store = await shared
    const keys = [await store.key('org_rate'), await store.key('org_rate')]
    const { ask } = await serveApi(scope, store.prefix, { rate: { requests: 2, windowSeconds: 3_600 } })
    for (const key of keys)
      for (const status of [200, 200, 429]) expect((await ask('/payouts', key)).status).toBe(status)
  })

  test('does not count what is not authenticated', async () => {
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

  test('lets a request succeed after the seconds it names', async () => {
    const store = await shared
    const key = await store.key('org_rate')
    const { ask } = await serveApi(scope, store.prefix, { rate: { requests: 1, windowSeconds: 2 } })
    expect((await ask('/payouts', key)).status).toBe(200)
    const refused = await ask('/payouts', key)
    const until = performance.now() + Number(refused.headers.get('retry-after')) * 1_000
    expect(refused.status).toBe(429)
    await eventually(() => expect(performance.now()).toBeGreaterThan(until))
    expect((await ask('/payouts', key)).status).toBe(200)
  })
})

describe('an address without a valid key', () => {
  test('is answered 401 so often, then 429, and nothing is looked up for it any more but keys that were valid', async () => {
    const store = await shared
    const [known, unseen, revoked] = [
      await store.key('org_rate'),
      await store.key('org_rate'),
      await store.key('org_rate', { revoked: true }),
    ]
    let reads = 0
    const { ask } = await serveApi(scope, store.prefix, {
      failuresPerAddress: 10,
      between: elasticsearch => ({
        ...elasticsearch,
        multiGet: (...given) => {
          reads++
          return elasticsearch.multiGet(...given)
        },
      }),
    })
    expect((await ask('/payouts', known)).status).toBe(200)
    const wrong = [undefined, 'short', 'x'.repeat(40), revoked]
    for (let time = 0; time < 10; time++) expect((await ask('/payouts', wrong[time % 4])).status).toBe(401)
    reads = 0
    const refused = [...wrong, 'y'.repeat(40), unseen].map(key => ask('/payouts', key))
    for (const answer of await Promise.all(refused)) {
      expect([answer.status, refusedWith(answer).code]).toEqual([429, 'rate_limited'])
      expect(answer.headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
      expect(answer.headers.get('ratelimit')).toBeNull()
    }
    expect(reads).toBe(0)
    expect((await ask('/payouts', known)).status).toBe(200)
  })
})
