import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { REFUSALS_LOGGED, REFUSALS_LOGGED_SECONDS } from '../../api/limits.ts'
import { type Answer, refusedWith, serveApi, useStore } from '../support/api.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'

const scope = fileScope()
const shared = (async () => {
  const store = await useStore(scope)
  for (const org of ['org_mine', 'org_theirs']) {
    const mine = org === 'org_mine' ? 'a' : 'b'
    store.payout(org, 1, { id: `payout_${mine}` })
    store.rep(org, `rep_${mine}`, [{ seq: 2, name: mine }])
    store.period(org, `period_${mine}`, [{ seq: 3, name: mine }])
    store.payroll(org, 4, `payroll_${mine}`, '1.00')
    await store.publish(org, 10)
  }
  const key = await store.key('org_mine')
  const revoked = await store.key('org_mine', { revoked: true })
  const mute = await store.key('org_mine', { permissions: [] })
  const served = await serveApi(scope, store.prefix)
  const spent = await serveApi(scope, store.prefix, { rate: { requests: 1, windowSeconds: 3_600 } })
  await spent.ask('/payouts', key)
  await spent.ask('/payouts', mute)
  return { store, key, revoked, mute, ...served, spent }
})()

const said = (answer: Answer): string => `${answer.status} ${refusedWith(answer).code}`

describe('the first failing check answers', () => {
  // Each request fails every check from its row on. With the error of its row corrected, the next row answers.
  type Row = [
    string,
    string,
    {
      path: string
      key?: 'none' | 'unknown' | 'mute' | 'good'
      spent?: boolean
      method?: string
      headers?: Record<string, string>
    },
  ]
  const wrong = '?limit=0&starting_after=payout_nobody'
  const rows: Row[] = [
    [
      'too long a target',
      '414 uri_too_long',
      { path: `/openapi.json?${'x'.repeat(7_700)}`, method: 'POST', headers: { 'x-long': 'x'.repeat(8_200) } },
    ],
    [
      'too large headers',
      '431 headers_too_large',
      { path: `/openapi.json${wrong}`, method: 'POST', headers: { 'x-long': 'x'.repeat(8_500) } },
    ],
    ['a path outside the API', '404 not_found', { path: `//nowhere${wrong}`, method: 'POST' }],
    ['the document, another method', '405 method_not_allowed', { path: `/openapi.json${wrong}`, method: 'POST' }],
    ['the document, a parameter', '400 invalid_request', { path: `/openapi.json${wrong}` }],
    ['no key', '401 unauthorized', { path: `/nowhere${wrong}`, method: 'POST', spent: true }],
    ['an unknown key', '401 unauthorized', { path: `/nowhere${wrong}`, method: 'POST', key: 'unknown', spent: true }],
    [
      'a key that may not read',
      '403 forbidden',
      { path: `/nowhere${wrong}`, method: 'POST', key: 'mute', spent: true },
    ],
    [
      'a key over its limit',
      '429 rate_limited',
      { path: `/nowhere${wrong}`, method: 'POST', key: 'good', spent: true },
    ],
    ['an unknown path', '404 not_found', { path: `/nowhere${wrong}`, method: 'POST', key: 'good' }],
    ['another method', '405 method_not_allowed', { path: `/payouts${wrong}`, method: 'POST', key: 'good' }],
    ['a bad parameter', '400 invalid_request', { path: `/payouts${wrong}`, key: 'good' }],
    ['a bad parameter of a record', '400 invalid_request', { path: `/payouts/payout_nobody${wrong}`, key: 'good' }],
    [
      'an unknown cursor',
      '400 invalid_cursor',
      { path: '/payouts?starting_after=payout_nobody', key: 'good', headers: { 'if-none-match': '*' } },
    ],
    [
      'an unknown id',
      '404 not_found',
      { path: '/payouts/payout_nobody', key: 'good', headers: { 'if-none-match': '*' } },
    ],
  ]
  test.each(rows)(
    '%s: %s',
    async (_, expected, { path, key = 'none', spent = false, method = 'GET', headers = {} }) => {
      const api = await shared
      const keys = { none: undefined, unknown: 'ck_unknown_unknown_unknown', mute: api.mute, good: api.key }
      const answer = await (spent ? api.spent : api).ask(path, keys[key], { method, headers })
      expect(said(answer)).toBe(expected)
      expect(answer.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
      expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
      expect(answer.headers.has('etag')).toBe(false)
    },
  )
})

describe('a key', () => {
  const malformed: [string, Record<string, string>][] = [
    ['that is missing', {}],
    ['that is empty', { authorization: '' }],
    ['without a scheme', { authorization: 'KEY' }],
    ['of another scheme', { authorization: 'Basic KEY' }],
    ['without a space', { authorization: 'BearerKEY' }],
    ['after a space and a tab', { authorization: 'Bearer \tKEY' }],
    ['after a tab', { authorization: 'Bearer\tKEY' }],
    ['with a space in it', { authorization: 'Bearer KE Y' }],
    ['with a comma', { authorization: 'Bearer KEY,KEY' }],
    ['twice in one header', { authorization: 'Bearer KEY, Bearer KEY' }],
    ['with an equals sign', { authorization: 'Bearer KEY=' }],
    ['that is too short', { authorization: `Bearer ${'a'.repeat(19)}` }],
    ['that is too long', { authorization: `Bearer ${'a'.repeat(201)}` }],
    ['in quotes', { authorization: 'Bearer "KEY"' }],
    ['in another header', { 'x-api-key': 'KEY' }],
    ['in a cookie', { cookie: 'authorization=KEY' }],
  ]
  test.each(malformed)('%s gets a 401, byte for byte like an unknown or revoked one', async (_, headers) => {
    const { ask, key, revoked } = await shared
    const given = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, value.replaceAll('KEY', key)]),
    )
    const answer = await ask('/payouts', undefined, { headers: given })
    const unknown = await ask('/payouts', 'ck_unknown_unknown_unknown')
    expect(said(answer)).toBe('401 unauthorized')
    expect(answer.text).toBe(unknown.text)
    expect((await ask('/payouts', revoked)).text).toBe(unknown.text)
    const names = (one: Answer) => [...one.headers.keys()].toSorted()
    expect(names(answer)).toEqual(names(unknown))
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    expect(answer.headers.get('cache-control')).toBe('private, no-cache')
    expect(answer.headers.has('ratelimit')).toBe(false)
  })

  test.each([' ', '  ', ' '.repeat(50)])('may come after any number of spaces: %j', async spaces => {
    const { ask, key } = await shared
    const headers = { authorization: `Bearer${spaces}${key}` }
    expect((await ask('/payouts', undefined, { headers })).status).toBe(200)
  })

  const everyRoute = [
    '/reps',
    '/periods',
    '/payouts',
    '/payroll_files',
    '/reps/rep_a',
    '/periods/period_a',
    '/payouts/payout_a',
    '/payroll_files/payroll_a',
    '/statements/payout_a',
  ]
  test.each(everyRoute)(
    'is required at %s: 401 without a key, 403 for a key that may not read, 200 for a good one',
    async path => {
      const { ask, key, revoked, mute } = await shared
      expect(said(await ask(path))).toBe('401 unauthorized')
      expect(said(await ask(path, revoked))).toBe('401 unauthorized')
      expect(said(await ask(path, mute))).toBe('403 forbidden')
      expect((await ask(path, key)).status).toBe(200)
    },
  )

  test.each(['Bearer', 'bearer', 'BEARER', 'bEaReR'])('is accepted after %s', async scheme => {
    const { ask, key } = await shared
    expect((await ask('/payouts', undefined, { headers: { authorization: `${scheme} ${key}` } })).status).toBe(200)
  })

  test.each([20, 200])('may have %i characters', async length => {
    const { store, ask } = await shared
    const key = await store.key('org_mine', { text: `ck-_${'Z9'.repeat(100)}`.slice(0, length) })
    expect((await ask('/payouts', key)).status).toBe(200)
  })

  test('in the query is an unknown parameter', async () => {
    const { ask, key } = await shared
    expect(said(await ask(`/payouts?api_key=${key}`))).toBe('401 unauthorized')
    expect(said(await ask(`/payouts?api_key=${key}`, key))).toBe('400 invalid_request')
  })
})

describe('another organization', () => {
  test('is indistinguishable from nothing: its ids get the same bytes as unknown ids', async () => {
    const { ask, key } = await shared
    const comparable = ({ status, text, headers }: Answer) => {
      const { date: _, 'x-request-id': __, ratelimit: ___, ...rest } = Object.fromEntries(headers)
      return { status, text, rest }
    }
    const paths = (id: string) =>
      ['payout', 'rep', 'period', 'payroll'].flatMap(prefix => [
        `/reps/${prefix}_${id}`,
        `/periods/${prefix}_${id}`,
        `/payouts/${prefix}_${id}`,
        `/statements/${prefix}_${id}`,
        `/payroll_files/${prefix}_${id}`,
        ...['reps', 'periods', 'payouts', 'payroll_files'].map(list => `/${list}?starting_after=${prefix}_${id}`),
      ])
    const [foreign, unknown] = [paths('b'), paths('c')]
    for (const [place, path] of foreign.entries()) {
      const answers = [await ask(path, key), await ask(unknown[place] ?? '', key)].map(comparable)
      expect(answers[0], path).toEqual(answers[1])
      expect(answers[0]?.status).not.toBe(200)
    }
  })

  test('is in no list', async () => {
    const { ask, key } = await shared
    for (const list of ['/reps', '/periods', '/payouts', '/payroll_files']) {
      const { text } = await ask(list, key)
      expect(text).toMatch(/_a"/)
      expect(text).not.toMatch(/_b"/)
    }
  })
})

describe('the log', () => {
  test('has the client address of a refused request, and only a few lines for a flood from one address', async (test: Scope) => {
    const { store, key } = await shared
    const rate = { requests: 1, windowSeconds: 3_600 }
    const { ask, logged } = await serveApi(test, store.prefix, { rate, trustedProxies: ['127.0.0.1'] })
    const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })
    for (let time = 0; time < 50; time++) await ask('/payouts', 'ck_canary_canary_canary_', from('192.0.2.1'))
    await ask('/payouts', undefined, from('2001:db8::7'))
    for (let time = 0; time < 2; time++) await ask('/payouts', key, from('192.0.2.3'))
    const lines = logged.map(line => JSON.parse(line) as { status: number; address?: string })
    expect(lines.map(({ status, address }) => `${status} ${address}`)).toEqual([
      ...Array.from({ length: REFUSALS_LOGGED }, () => '401 192.0.2.1'),
      '401 2001:db8::7',
      '200 undefined',
      '429 192.0.2.3',
    ])
    expect(logged.join()).not.toContain('canary')
  })

  test('has only a few lines about bytes that are no request, and says how many are missing', async (test: Scope) => {
    const { store } = await shared
    let ahead = 0
    const { send, logged } = await serveApi(test, store.prefix, { elapsed: () => performance.now() + ahead })
    for (let time = 0; time < 2 * REFUSALS_LOGGED; time++) expect(await send('no request\r\n\r\n')).toContain('400')
    ahead = REFUSALS_LOGGED_SECONDS * 1_000
    await send('no request\r\n\r\n')
    const lines = logged.map(line => JSON.parse(line))
    const line = { msg: 'refused bytes', because: 'invalid_request', address: '127.0.0.1' }
    expect(lines).toHaveLength(REFUSALS_LOGGED + 1)
    for (const one of lines) expect(one).toMatchObject(line)
    expect(lines.map(({ unlogged }) => unlogged ?? 0)).toEqual([...Array(REFUSALS_LOGGED).fill(0), REFUSALS_LOGGED])
  })

  test('has only a few lines about connections that clients without a key break', async (test: Scope) => {
    const { store, key } = await shared
    const ended = Promise.withResolvers<void>()
    test.onTestFinished(async () => ended.resolve())
    let [areKeysRead, isRead] = [true, true]
    const { ask, port, usage, logged } = await serveApi(test, store.prefix, {
      between: ({ search, multiGet, indexIds }) => ({
        indexIds,
        // Only look-ups of keys: on a busy machine a look at the indices may begin now.
        multiGet: async (names, ...more) => {
          if (!areKeysRead && names.some(({ _index }) => _index.includes('api-keys'))) await ended.promise
          return multiGet(names, ...more)
        },
        search: async (...given) => {
          if (!isRead) await ended.promise
          return search(...given)
        },
      }),
    })
    expect((await ask('/payouts', key)).status).toBe(200)
    const breakOff = async (text: string, hasArrived: () => boolean): Promise<void> => {
      const socket = connect(port, '127.0.0.1')
      socket.write(`GET /api/v1/payouts HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${text}\r\n\r\n`)
      await eventually(() => expect(hasArrived()).toBe(true), { every: 5 })
      socket.resetAndDestroy()
    }
    const broken = () => logged.filter(line => line.includes('an answer was not delivered'))
    areKeysRead = false
    for (let sent = 1; sent <= 2 * REFUSALS_LOGGED; sent++) {
      await breakOff(`${'x'.repeat(40)}${sent}`, () => usage().key_look_ups.held === sent)
    }
    await eventually(() => expect(broken()).toHaveLength(REFUSALS_LOGGED))
    ;[areKeysRead, isRead] = [true, false]
    await breakOff(key, () => usage().reads.held === 1)
    await eventually(() => expect(broken().length).toBeGreaterThan(REFUSALS_LOGGED))
    expect(broken()).toHaveLength(REFUSALS_LOGGED + 1)
  })

  test('has one line per request, and nothing of its request or answer', async (test: Scope) => {
    const { store, key } = await shared
    const { ask, logged } = await serveApi(test, store.prefix)
    logged.length = 0
    await ask('/payouts/payout_a', key)
    await ask('/payouts?starting_after=payout_nobody', key)
    await ask('/payouts/payout_canary%00', key, { headers: { 'user-agent': 'canary' } })
    await ask('/payouts', 'ck_canary_canary_canary_')
    expect(logged.length).toBe(4)
    expect(JSON.parse(logged[0] ?? '')).toMatchObject({
      request_id: expect.any(String),
      method: 'GET',
      route: '/api/v1/payouts/:id',
      status: 200,
      ms: expect.any(Number),
      key_id: expect.stringMatching(/^key_/),
      organization_hash: expect.stringMatching(/^[0-9a-f]{16}$/),
    })
    for (const word of ['canary', 'payout_', 'starting_after', key, 'org_']) expect(logged.join()).not.toContain(word)
  })
})
