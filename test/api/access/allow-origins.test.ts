/** Requests of pages of another origin. None of them needs Elasticsearch. */
import { expect, test } from 'vitest'
import { TARGET_LENGTH_MAX } from '../../../api/limits.ts'
import { serveApi } from '../../support/api.ts'
import type { Scope } from '../../support/scope.ts'

const ORIGIN = 'https://example.com'

const serve = async (scope: Scope) => {
  const audited: string[] = []
  const write = async ({ text }: { readonly text: string }) => {
    audited.push(text)
    return 'written' as const
  }
  const audit = { isStrict: true, writer: { write, end: async () => undefined } }
  const { port, logged } = await serveApi(scope, 'p', { url: 'http://127.0.0.1:1', corsOrigins: [ORIGIN], audit })
  const ask = (path: string, method: string, headers: Record<string, string>) =>
    fetch(`http://127.0.0.1:${port}/api/v1${path}`, { method, headers })
  const preflight = (path: string, origin = ORIGIN) =>
    ask(path, 'OPTIONS', { origin, 'access-control-request-method': 'GET' })
  return { ask, preflight, audited, logged }
}
const allowedIn = ({ headers }: Response) => headers.get('access-control-allow-origin')
const ID = expect.stringMatching(/^[0-9a-f-]{36}$/)

test('a preflight request is answered with an id, and has no line in the log and in the audit log', async t => {
  const { preflight, audited, logged } = await serve(t)
  const answer = await preflight('/payouts')
  expect([answer.status, answer.headers.get('x-request-id'), allowedIn(answer)]).toEqual([204, ID, ORIGIN])
  expect(answer.headers.get('access-control-allow-methods')).toBe('GET,HEAD')
  expect([audited, logged]).toEqual([[], []])
})

test('a preflight request with a target that is too long is refused as any other request, and logged', async t => {
  const { preflight, audited, logged } = await serve(t)
  const answer = await preflight(`/payouts?${'x'.repeat(TARGET_LENGTH_MAX)}`)
  expect([answer.status, answer.headers.get('x-request-id')]).toEqual([414, ID])
  expect([audited.length, logged.length]).toEqual([1, 1])
})

test('an allowed origin may read refusals, too, and another one is no preflight', async t => {
  const { ask, preflight } = await serve(t)
  const refused = await ask('/payouts', 'GET', { origin: ORIGIN })
  expect([refused.status, allowedIn(refused)]).toEqual([401, ORIGIN])
  expect(refused.headers.get('access-control-expose-headers')).toContain('X-Request-Id')
  const tooLong = await ask(`/payouts?${'x'.repeat(TARGET_LENGTH_MAX)}`, 'GET', { origin: ORIGIN })
  expect([tooLong.status, allowedIn(tooLong)]).toEqual([414, ORIGIN])
  const other = await preflight('/payouts', 'https://example.com:8443')
  expect([other.status, allowedIn(other)]).toEqual([401, null])
})
