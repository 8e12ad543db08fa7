/** The header with the address of the next page. */
import { describe, expect, test } from 'vitest'
import { linkNext } from '../../../api/answer/link-next.ts'
import type { Context } from '../../../api/http/request.ts'
import { answering } from '../../support/answering-request.ts'

type Asked = { readonly headers?: Record<string, string>; readonly secure?: boolean; readonly publicUrl?: string }

const linkOf = (query: string, { headers = {}, secure = false, publicUrl }: Asked = {}): string | undefined => {
  let link: string | undefined
  const ctx = {
    state: { ...answering(), path: '/api/v1/payouts', query, publicUrl },
    req: { headers: { host: 'localhost:8080', ...headers } },
    secure,
    set: (name: string, value: string) => {
      if (name === 'Link') link = value
    },
  }
  linkNext(ctx as unknown as Context<ReturnType<typeof answering>>, 'payout_9')
  return link
}
const PATH = '/api/v1/payouts?starting_after=payout_9'

describe('the link to the next page', () => {
  test('has all parameters of the request, and the cursor in place of the earlier one', () => {
    const link = linkOf('limit=2&starting_after=payout_1&as_of=2026-02-01T00%3A00%3A00%2B01%3A00')
    const as_of = 'as_of=2026-02-01T00%3A00%3A00%2B01%3A00'
    expect(link).toBe(`<http://localhost:8080/api/v1/payouts?limit=2&starting_after=payout_9&${as_of}>; rel="next"`)
  })

  test.each<[string, Asked, string]>([
    ['begins with the address that the operator set', { publicUrl: 'https://example.com' }, 'https://example.com'],
    [
      'is https on a connection with TLS',
      { secure: true, headers: { host: 'example.com:8443' } },
      'https://example.com:8443',
    ],
    [
      'is https behind a proxy that says so',
      { headers: { host: 'example.com', 'x-forwarded-proto': 'https' } },
      'https://example.com',
    ],
    ['is http on this machine', { headers: { host: '127.0.0.1:1' } }, 'http://127.0.0.1:1'],
    ['is a path where a proxy may end TLS without a word', { headers: { host: 'example.com' } }, ''],
    ['is a path behind a proxy without TLS', { headers: { 'x-forwarded-proto': 'http' } }, ''],
    ['is a path if the host is none', { secure: true, headers: { host: 'a>b' } }, ''],
    ['is a path if the host names a user', { secure: true, headers: { host: 'a@example.com' } }, ''],
    ['is a path if the host has a path', { secure: true, headers: { host: 'example.com/c' } }, ''],
  ])('%s', (_, asked, base) => {
    expect(linkOf('', asked)).toBe(`<${base}${PATH}>; rel="next"`)
  })
})
