/** Ten thousand requests of all kinds, each over its own connection. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { refusals } from '../../schemas/errors.ts'
import { openapi } from '../../schemas/reference/openapi.ts'
import { sendBytes, serveApi, useStore } from '../support/api.ts'
import { wasLate } from '../support/in-time.ts'
import { seedOfRun } from '../support/random.ts'
import { fileScope } from '../support/scope.ts'

const REQUESTS = 10_000
const AT_ONCE = 25
/** Part of every generated text: an answer that contains it repeats the request. */
const MARK = 'zQ7x'

const scope = fileScope()
const shared = (async () => {
  const store = await useStore(scope)
  for (let seq = 1; seq <= 20; seq++) store.payout('org_any', seq, { id: `payout_${seq}` })
  store.rep('org_any', 'rep_1', [{ seq: 21, name: 'Ada' }])
  await store.publish('org_any', 30)
  const keys = [await store.key('org_any'), await store.key('org_any', { permissions: [] })]
  return { keys, api: await serveApi(scope, store.prefix) }
})()

const naughty = fc.constantFrom(
  ...[
    '',
    "' OR 1=1 --",
    '<script>alert(1)</script>',
    '#{7*7}',
    '{{7*7}}',
    '../../etc/passwd',
    '..%2f..%2f',
    '%00',
    '%zz',
    '%c0%af',
    '%F0%9F%92%A9',
    '\u00e9\u0301',
    '\ufeff',
    '\u202e',
    'null',
    'NaN',
    '-1',
    '1e9',
    '0x10',
    '١٢',
    '[object Object]',
    '__proto__',
    'constructor',
    '*',
    '_all',
    '_search?q=*',
    'a'.repeat(300),
    '{"query":{"match_all":{}}}',
    '; ls',
    '`id`',
    '\t',
    '#',
    ';',
    '&&',
    '==',
  ].map(text => `${text}${MARK}`),
)
const part = fc.oneof(
  fc.constantFrom('payouts', 'reps', 'periods', 'payroll_files', 'statements', 'openapi.json', 'payout_1', 'rep_1'),
  fc.constantFrom('changes', 'totals', 'history', 'payouts/payout_1/history'),
  fc.constantFrom('PAYOUTS', 'payouts.json', 'payout_999', 'rep_', '.', '..', '', '%70ayouts', 'Statements'),
  naughty,
)
const path = fc
  .tuple(fc.constantFrom('/api/v1', '/api/v1', '/api/v1', '/api/v2', '', '/API/V1'), fc.array(part, { maxLength: 4 }))
  .map(([base, parts]) => [base, ...parts].join('/') || '/')
const parameter = fc
  .tuple(
    fc.oneof(
      fc.constantFrom('limit', 'starting_after', 'as_of', 'rep_id', 'period_id', 'Limit', 'limit[]', 'key', 'api_key'),
      naughty,
    ),
    fc.oneof(
      fc.constantFrom('1', '50', '201', '0', '', 'payout_1', 'payout_999', 'rep_1', 'period_1'),
      fc.constantFrom('rep_1.1', 'rep_1.0', 'rep_1.99999999999', '1970-01-01T00:00:01Z', '9999-12-31T23:59:59Z', '-1'),
      naughty,
    ),
  )
  .map(([name, value]) => `${name}=${value}`)
const query = fc.oneof(
  fc.constant(''),
  fc.array(parameter, { minLength: 1, maxLength: 4 }).map(parameters => `?${parameters.join('&')}`),
)
const header = fc.oneof(
  fc.tuple(
    fc.constantFrom(
      'If-None-Match',
      'Accept',
      'Range',
      'X-Forwarded-For',
      'X-HTTP-Method-Override',
      'Cookie',
      'Origin',
    ),
    naughty,
  ),
  fc.constantFrom<[string, string]>(
    ['If-None-Match', '*'],
    ['If-None-Match', '"x", W/"y"'],
    ['Content-Length', '5'],
    ['Content-Length', '100000'],
    ['Content-Length', '-1'],
    ['Transfer-Encoding', 'chunked'],
    ['Transfer-Encoding', 'gzip, chunked'],
    ['Expect', '100-continue'],
    ['Expect', `200-${MARK}`],
    ['Host', 'another'],
    ['Upgrade', 'websocket'],
    ['Authorization', `Bearer ${MARK}`],
    ['Authorization', 'Basic eDp5'],
    ['X-Long', 'x'.repeat(9_000)],
  ),
)
const method = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('GET', 'GET', 'GET', 'HEAD') },
  {
    weight: 2,
    arbitrary: fc.constantFrom('POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE', 'PROPFIND', 'CONNECT', 'QUERY'),
  },
  { weight: 1, arbitrary: fc.constantFrom('get', MARK, 'GET\t', '', 'M-SEARCH') },
)
const keyOf = fc.constantFrom(undefined, 0, 0, 0, 0, 1)
const wild = fc.record({
  method,
  path,
  query,
  version: fc.oneof(
    { weight: 20, arbitrary: fc.constant('HTTP/1.1') },
    { weight: 1, arbitrary: fc.constantFrom('HTTP/1.0', 'HTTP/2.0', 'HTTP/0.9', '') },
  ),
  /** Index of the key: none, one that may read, or one that may not. */
  key: keyOf,
  headers: fc.array(header, { maxLength: 3 }),
})
/** Close to the requests of a real client. */
const tame = fc.record({
  method: fc.constantFrom('GET', 'GET', 'GET', 'HEAD', 'POST'),
  path: fc
    .constantFrom(
      'payouts',
      'reps',
      'periods',
      'payroll_files',
      'payouts/payout_1',
      'statements/payout_2',
      'reps/rep_1',
      'payouts/payout_1/history',
      'changes',
      'totals',
      'openapi.json',
    )
    .map(rest => `/api/v1/${rest}`),
  query: fc.oneof(
    fc.constantFrom(
      '',
      '',
      '?limit=5',
      '?starting_after=payout_3',
      '?limit=2&starting_after=payout_19',
      '?as_of=payout_3',
    ),
    query,
  ),
  version: fc.constant('HTTP/1.1'),
  key: keyOf,
  headers: fc.array(
    fc.constantFrom<[string, string]>(
      ['If-None-Match', '*'],
      ['Accept', 'text/html'],
      ['Range', 'bytes=0-1'],
      ['Content-Length', '5'],
    ),
    { maxLength: 1 },
  ),
})
const request = fc.oneof({ weight: 3, arbitrary: wild }, { weight: 2, arbitrary: tame })
type Sent = (typeof request extends fc.Arbitrary<infer Value> ? Value : never) & object

const bytesOf = ({ method, path, query, version, headers }: Sent, key: string | undefined): Buffer =>
  Buffer.from(
    [
      `${method} ${path}${query} ${version}`,
      'Host: localhost',
      ...(key === undefined ? [] : [`Authorization: Bearer ${key}`]),
      ...headers.map(([name, value]) => `${name}: ${value}`),
      'Connection: close',
      '\r\n',
    ].join('\r\n'),
  )

/** Every status in the OpenAPI document, and 304 for the document. */
const documented = new Set(
  Object.values(openapi.paths as unknown as Record<string, { get: { responses: object } }>).flatMap(({ get }) =>
    Object.keys(get.responses).map(Number),
  ),
)

/** Removes the only part of a request that an answer may repeat: the start of the name of an unknown parameter. */
const withoutParameterName = ({ query }: Sent, answer: string): string =>
  answer.replace(/Unknown query parameter `([^`…]{1,16})…?`\./, (message, shown: string) => {
    const names = query.slice(1).split(/[&=]/)
    return names.some(name => name.startsWith(shown)) ? '' : message
  })

const expectProper = (sent: Sent, answer: string): number => {
  const [, status = '', headers = '', body = ''] =
    /^HTTP\/1\.1 (\d{3}) [^\r]*\r\n(.*?)\r\n\r\n(.*)$/s.exec(answer) ?? []
  expect(documented, answer.slice(0, 200)).toContain(Number(status))
  expect(Number(status), answer.slice(0, 200)).toBeLessThan(500)
  expect(withoutParameterName(sent, answer).toLowerCase()).not.toContain(MARK.toLowerCase())
  expect(headers).toMatch(/^x-request-id: [0-9a-f-]{36}\r?$/im)
  expect(headers).toMatch(/^x-content-type-options: nosniff\r?$/im)
  expect(headers).not.toMatch(/^(server|x-powered-by|x-ratelimit[^:]*):/im)
  if (sent.method === 'HEAD' || status === '304') {
    // Bytes that are not HTTP have no method: their refusal has a body.
    if (body !== '') expect(status).toMatch(/^4/)
    return Number(status)
  }
  const type = /^content-type: (.*?)\r?$/im.exec(headers)?.[1]
  expect(type).toBe('application/json; charset=utf-8')
  const json = JSON.parse(body.replace(/^[0-9a-f]+\r\n(.*)\r\n0\r\n\r\n$/s, '$1'))
  if (status === '200') return 200
  expect(Object.keys(json)).toEqual(['error'])
  expect(Object.keys(json.error)).toEqual(['code', 'message'])
  expect(refusals).toHaveProperty(json.error.code, Number(status))
  return Number(status)
}

test(`${REQUESTS} requests of all kinds get documented answers: no 5xx, and nothing repeated except a parameter name`, async () => {
  const { keys, api } = await shared
  const seed = seedOfRun()
  console.log(`seed ${seed}`)
  const counts: Record<number, number> = {}
  let requests = 0
  /** On a busy machine the time of a request may be up: it is sent again. */
  const send = async (bytes: Buffer): Promise<string> => {
    for (;;) {
      const answer = await sendBytes(api.port, bytes)
      const id = /^HTTP\/1\.1 503 .*?^x-request-id: (\S+)/ims.exec(answer)?.[1]
      if (!wasLate(api, id)) return answer
    }
  }
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: AT_ONCE, maxLength: AT_ONCE }), async all => {
      const answers = await Promise.all(
        all.map(sent => send(bytesOf(sent, sent.key === undefined ? undefined : keys[sent.key]))),
      )
      for (const [place, sent] of all.entries()) {
        const status = expectProper(sent, answers[place] ?? '')
        counts[status] = (counts[status] ?? 0) + 1
        requests++
      }
    }),
    { numRuns: REQUESTS / AT_ONCE, seed },
  )
  expect(requests).toBeGreaterThanOrEqual(REQUESTS)
  // The requests produced every kind of answer.
  for (const status of [200, 304, 400, 401, 403, 404, 405, 413, 417, 431]) expect(counts).toHaveProperty(`${status}`)
})
