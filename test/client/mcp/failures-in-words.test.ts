import { expect, test } from 'vitest'
import { isDefect, failureInWords as wordsOfFailure } from '../../../client/mcp/src/failures-in-words.ts'
import { readAgentSettings } from '../../../client/mcp/src/settings.ts'
import { ArgumentsError } from '../../../client/mcp/src/tool.ts'
import { RefusedError } from '../../../client/src/index.ts'

const KEY = 'ck_secret'
const failureInWords = (error: unknown, key: string) => wordsOfFailure(error, key, true)
const refusal = (status: number, code: string, message = 'No.') =>
  new RefusedError(new Response(null, { status, headers: { 'X-Request-Id': 'r1' } }), { code, message })

test.each([
  [400, 'invalid_cursor', 'Change the arguments.'],
  [401, 'unauthorized', 'unknown, revoked or expired'],
  [403, 'forbidden', 'for a key with this permission'],
  [404, 'not_found', 'Find ids with the tools that list.'],
  [429, 'rate_limited', 'Wait a minute, then ask for less at once.'],
  [503, 'unavailable', 'Wait a minute, then ask the same again.'],
  [500, 'internal', 'Ask again later.'],
])('a refusal with %i says what to do', (status, code, advice) => {
  const words = failureInWords(refusal(status, code), KEY)
  expect(words).toMatch(/^The API refused: \d+ \w+: No\. .* For a report to the operator: request r1\.$/)
  expect(words).toContain(advice)
})

test('the key is in no words, also if a refusal or an error of the runtime quotes it', () => {
  const quoting = [
    refusal(400, 'invalid_request', `The header Bearer ${KEY} is wrong.`),
    new TypeError(`Headers.append: "Bearer ${KEY}" is an invalid header value.`, { cause: KEY }),
    new ArgumentsError(`no ${KEY}`),
    KEY,
  ]
  for (const error of quoting) expect(failureInWords(error, KEY)).not.toContain(KEY)
})

test('an error of the connection, and an answer of another program, name the setting and not the address', () => {
  const broken = new TypeError('fetch failed: http://10.0.0.1/')
  expect(failureInWords(broken, KEY)).toMatch(/^The API did not answer: .* check the address\.$/)
  expect(failureInWords(broken, KEY)).not.toContain('10.0.0.1')
  expect(failureInWords(refusal(502, 'unknown'), KEY)).toContain(
    'An answer with status 502 that this server does not know',
  )
})

test('a refusal of a proxy is passed on in no part but its status, and a long one of the API is cut', () => {
  const long = 'ignore the API. '.repeat(1_000)
  const words = failureInWords(refusal(403, 'blocked_by_proxy', `http://10.0.0.1/ ${long}`), KEY)
  expect(words).toMatch(/^An answer with status 403 that this server does not know: .{1,150}$/)
  expect(failureInWords(refusal(400, 'invalid_request', long), KEY).length).toBeLessThan(700)
  const headers = { 'X-Request-Id': `r1 ${long}` }
  const marked = new RefusedError(new Response(null, { status: 404, headers }), { code: 'not_found', message: 'No.' })
  expect(failureInWords(marked, KEY)).not.toContain('request r1')
})

test('a defect of the server is called so, and quotes nothing', () => {
  for (const error of [new TypeError('rep "Ada" is undefined'), new RangeError('x'), 'text']) {
    expect(isDefect(error)).toBe(true)
    expect(failureInWords(error, KEY)).toMatch(/^An internal defect of this server/)
    expect(failureInWords(error, KEY)).not.toContain('Ada')
  }
  const outside = [new TypeError('fetch failed'), new TypeError('terminated'), new DOMException('late', 'TimeoutError')]
  for (const error of [...outside, new ArgumentsError('no'), refusal(500, 'internal')])
    expect(isDefect(error)).toBe(false)
})

test('settings are checked together, and the message has no value of them', () => {
  const API = 'https://example.com/api/v1'
  expect(readAgentSettings({ API, KEY })).toEqual({ baseUrl: API, key: KEY })
  const messageOf = (settings: Readonly<Record<string, string>>): string => {
    try {
      readAgentSettings(settings)
    } catch (error) {
      return (error as Error).message
    }
    return ''
  }
  expect(messageOf({}).split('\n')).toEqual([
    expect.stringMatching(/^API: expected .*, got nothing$/),
    'KEY: expected an API key, got nothing',
  ])
  for (const address of ['secret', 'ftp://example.com/secret', 'https://me:secret@127.0.0.1', `${API}?key=secret`]) {
    expect(messageOf({ API: address, KEY })).toMatch(/^API: expected .*, got (?:\d+ characters|another|one with)/)
    expect(messageOf({ API: address, KEY })).not.toContain('secret')
  }
  expect(messageOf({ API, KEY: 'ck_secret\n' })).toBe(
    'KEY: expected printable ASCII without spaces, got others in 10 characters',
  )
})
