import { describe, expect, test } from 'vitest'
import { type Answer, refusedWith, serveApi, useStore } from '../support/api.ts'
import { fileScope } from '../support/scope.ts'

const scope = fileScope()
const shared = (async () => {
  const store = await useStore(scope)
  store.payout('org_paths', 1, { id: 'payout_a' })
  store.rep('org_paths', 'rep_a', [{ seq: 2, name: 'A' }])
  await store.publish('org_paths', 10)
  return { key: await store.key('org_paths'), ...(await serveApi(scope, store.prefix)) }
})()
const said = (answer: Answer): string => `${answer.status} ${refusedWith(answer).code}`

describe('a path', () => {
  const none = [
    '/',
    '',
    '/payouts/',
    '//',
    '/Payouts',
    '/PAYOUTS',
    '/payout',
    '/payouts//payout_a',
    '/payouts/payout_a/',
    '/payouts/payout_a/lines',
    '/payouts/payout_a/history/',
    '/payouts//history',
    '/reps/rep_1/history',
    '/changes/',
    '/changes/payout_a',
    '/totals/',
    '/%70ayouts',
    '/payouts%2Fpayout_a',
    '/payouts;x=1',
    '/statements',
    '/statements/',
    '/payroll',
    '/payroll-files',
    '/openapi.JSON',
    '/openapi.json/',
    '/metrics',
    '/livez',
    '/payouts#x',
    '/payouts\\payout_a',
    '/constructor',
    '/__proto__',
    '/./payouts',
    '/reps/../payouts',
  ]
  const malformed = [
    'payout_a%2f',
    '%zz',
    'payout_a%00',
    '..',
    '.',
    '%2e%2e',
    '%C0%AE',
    'payout_a%20',
    'payout_a;x=1',
    'rep_a',
    '*',
    'payout_a#x',
    ':id',
    '__proto__',
    'payout_',
    'payout_%61%2f..',
    `payout_${'a'.repeat(65)}`,
    '%F0%9F%98%80',
    'org_paths:payout_a',
  ]
  test.each(none)('%s does not exist for any method, and without a key the answer is a 401', async path => {
    const { key, send } = await shared
    for (const method of ['GET', 'POST', 'PROPFIND']) {
      const request = (more: string) =>
        `${method} /api/v1${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${more}\r\n`
      expect((await send(request(''))).split('\r\n')[0]).toBe('HTTP/1.1 401 Unauthorized')
      const text = await send(request(`Authorization: Bearer ${key}\r\n`))
      expect(text.split('\r\n')[0]).toBe('HTTP/1.1 404 Not Found')
      expect(text).toContain('"code":"not_found"')
    }
  })

  test.each(malformed)('with the id %s is not found', async id => {
    const { key, send } = await shared
    for (const path of ['/payouts', '/reps', '/statements']) {
      const text = await send(
        `GET /api/v1${path}/${id} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer ${key}\r\n\r\n`,
      )
      if (path === '/reps' && id === 'rep_a') continue
      expect(text.split('\r\n')[0]).toBe('HTTP/1.1 404 Not Found')
      expect(text).toContain('"code":"not_found"')
    }
  })

  test.each([
    '//',
    '//api',
    '//api/v2/payouts',
    '//api/v1x',
    '//API/V1/payouts',
    '//api/v1%2Fpayouts',
    '///api/v1/payouts',
    '//livez',
    '//metrics',
  ])('outside the API, %s, is not found, with and without a key', async path => {
    const { ask, key } = await shared
    expect(said(await ask(path))).toBe('404 not_found')
    expect(said(await ask(path, key))).toBe('404 not_found')
  })

  test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'SEARCH', 'QUERY', 'LINK'])(
    'that exists does not allow %s',
    async method => {
      const { send, key } = await shared
      for (const path of ['/payouts', '/payouts/payout_a', '/payouts/payout_nobody', '/statements/payout_a']) {
        const text = await send(
          `${method} /api/v1${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer ${key}\r\n\r\n`,
        )
        expect(text.split('\r\n')[0]).toBe('HTTP/1.1 405 Method Not Allowed')
        expect(text).toContain('\r\nAllow: GET, HEAD\r\n')
        expect(text).toContain('"code":"method_not_allowed"')
      }
    },
  )

  test('may have a percent-encoded id', async () => {
    const { ask, key } = await shared
    expect((await ask('/payouts/%70ayout_a', key)).status).toBe(200)
  })
})
