/** The address of the API as the client knows it. */
import type { IncomingHttpHeaders } from 'node:http'
import { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { describe, expect, test } from 'vitest'
import { baseAddressOf } from '../../../api/http/request.ts'

type Asked = { readonly headers?: IncomingHttpHeaders; readonly secure?: boolean; readonly publicUrl?: string }

const baseOf = ({ headers = {}, secure = false, publicUrl }: Asked): string => {
  const socket = secure ? new TLSSocket(new Socket()) : new Socket()
  return baseAddressOf({ headers: { host: 'localhost:8080', ...headers }, socket }, publicUrl)
}

describe('the base address', () => {
  test.each<[string, Asked, string]>([
    ['is the one that the operator set', { publicUrl: 'https://example.com' }, 'https://example.com'],
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
    ['is empty where a proxy may end TLS without a word', { headers: { host: 'example.com' } }, ''],
    ['is empty behind a proxy without TLS', { headers: { 'x-forwarded-proto': 'http' } }, ''],
    ['is empty if the request names no host', { secure: true, headers: { host: undefined } }, ''],
    ['is empty if the header names no valid host', { secure: true, headers: { host: 'a>b' } }, ''],
    ['is empty if the host names a user', { secure: true, headers: { host: 'a@example.com' } }, ''],
    ['is empty if the host has a path', { secure: true, headers: { host: 'example.com/c' } }, ''],
  ])('%s', (_, asked, base) => {
    expect(baseOf(asked)).toBe(base)
  })
})
