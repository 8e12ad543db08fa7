import { describe, expect, test } from 'vitest'
import { createAddressOf } from '../../../api/http/client-address.ts'

const addressOf = (trusted: readonly string[], peer: string | undefined, forwarded?: string) =>
  createAddressOf(trusted)({
    socket: { remoteAddress: peer },
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
  } as Parameters<ReturnType<typeof createAddressOf>>[0])

describe('the address of a client', () => {
  test.each([
    ['nobody is trusted', [], '192.0.2.1', '203.0.113.9', '192.0.2.1'],
    ['its peer is not trusted', ['10.0.0.0/8'], '192.0.2.1', '203.0.113.9', '192.0.2.1'],
    ['its peer is trusted', ['10.0.0.0/8'], '10.1.2.3', '203.0.113.9', '203.0.113.9'],
    ['its peer is trusted, and comes over IPv6', ['10.0.0.0/8'], '::ffff:10.1.2.3', '203.0.113.9', '203.0.113.9'],
    ['it forged hops', ['10.0.0.0/8'], '10.1.2.3', '10.9.9.9, 198.51.100.7, 203.0.113.9', '203.0.113.9'],
    ['there are several proxies', ['10.0.0.0/8', '192.0.2.1'], '10.1.2.3', '203.0.113.9, 192.0.2.1', '203.0.113.9'],
    ['every hop is trusted', ['10.0.0.0/8'], '10.1.2.3', '10.0.0.1, 10.0.0.2', '10.0.0.1'],
    ['the header is missing', ['10.0.0.0/8'], '10.1.2.3', undefined, '10.1.2.3'],
    ['the header is empty', ['10.0.0.0/8'], '10.1.2.3', '', '10.1.2.3'],
    ['a hop is malformed', ['10.0.0.0/8'], '10.1.2.3', '203.0.113.9, unknown, 10.0.0.2', '10.0.0.2'],
    ['the last hop is malformed', ['10.0.0.0/8'], '10.1.2.3', '203.0.113.9, _x', '10.1.2.3'],
    ['a hop has a port', ['10.0.0.0/8'], '10.1.2.3', '203.0.113.9:4711', '203.0.113.9'],
    ['a hop is IPv6 with a port', ['10.0.0.0/8'], '10.1.2.3', '[2001:db8::7]:4711', '2001:db8::7'],
    ['proxies are IPv6', ['2001:db8:1::/48'], '2001:db8:1::5', '2001:db8:2::7', '2001:db8:2::7'],
    ['one IPv6 address is trusted', ['::1'], '::1', '203.0.113.9', '203.0.113.9'],
    ['the connection is gone', ['10.0.0.0/8'], undefined, '203.0.113.9', undefined],
  ])('is right when %s', (_, trusted, peer, forwarded, address) => {
    expect(addressOf(trusted, peer, forwarded)).toBe(address)
  })
})
