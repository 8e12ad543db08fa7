import { expect, test } from 'vitest'
import { createFailedLogins } from '../../../api/access/failed-logins.ts'
import { networkOf } from '../../../api/http/client-address.ts'
import { ADDRESSES_REMEMBERED, FAILURES_WINDOW_SECONDS } from '../../../api/limits.ts'

const WINDOW = FAILURES_WINDOW_SECONDS * 1_000

test('limits the failed logins of an address per window, and starts again in the next window', () => {
  let time = 5
  const { reserve } = createFailedLogins(() => time, 3)
  for (let count = 0; count < 3; count++) {
    expect(reserve('192.0.2.1')).toBeDefined()
    time += 1_000
  }
  expect(reserve('192.0.2.1')).toBeUndefined()
  expect(reserve('192.0.2.2')).toBeDefined()
  // More failures do not extend the window.
  time = 5 + WINDOW - 1
  expect(reserve('192.0.2.1')).toBeUndefined()
  time += 1
  expect(reserve('192.0.2.1')).toBeDefined()
})

test('counts a login as failed when it begins, and takes that back once if the login succeeds', () => {
  const { reserve } = createFailedLogins(() => 0, 2)
  const [first, second] = [reserve('192.0.2.1'), reserve('192.0.2.1')]
  expect([first, second, reserve('192.0.2.1')]).toEqual([expect.any(Function), expect.any(Function), undefined])
  first?.()
  first?.()
  expect([reserve('192.0.2.1'), reserve('192.0.2.1')]).toEqual([expect.any(Function), undefined])
})

test('a login that began in an earlier window takes nothing back in the current window', () => {
  let time = 0
  const { reserve } = createFailedLogins(() => time, 1)
  const before = reserve('192.0.2.1')
  time = WINDOW
  expect(reserve('192.0.2.1')).toBeDefined()
  before?.()
  expect(reserve('192.0.2.1')).toBeUndefined()
})

test('a client with many addresses takes bounded memory: only the latest addresses are remembered', () => {
  const { reserve } = createFailedLogins(() => 0, 1)
  const addressOf = (place: number) => `10.${place >> 16}.${(place >> 8) & 255}.${place & 255}`
  for (let place = 0; place < 2 * ADDRESSES_REMEMBERED; place++) reserve(addressOf(place))
  expect(reserve(addressOf(2 * ADDRESSES_REMEMBERED - 1))).toBeUndefined()
  expect(reserve(addressOf(ADDRESSES_REMEMBERED))).toBeUndefined()
  expect(reserve(addressOf(0))).toBeDefined()
})

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['::FFFF:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:DB8:1:2::', '2001:db8:1:2'],
  ['2001:db8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:2'],
  ['2001:db8::1', '2001:db8:0:0'],
  ['2001:0db8::0001', '2001:db8:0:0'],
  ['::1', '0:0:0:0'],
  ['::', '0:0:0:0'],
  ['fe80::1%eth0', 'fe80:0:0:0'],
  ['', ''],
  [undefined, ''],
])('%s is counted as %s', (address, network) => {
  expect(networkOf(address)).toBe(network)
})
