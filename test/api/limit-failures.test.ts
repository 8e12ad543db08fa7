import { expect, test } from 'vitest'
import { createFailures, networkOf } from '../../api/limit-failures.ts'
import { ADDRESSES_REMEMBERED, FAILURES_WINDOW_SECONDS } from '../../api/limits.ts'

const WINDOW = FAILURES_WINDOW_SECONDS * 1_000

test('an address may fail so often in a window, and then again in the next', () => {
  let time = 5
  const failures = createFailures(() => time, 3)
  for (let count = 0; count < 3; count++) {
    expect(failures.exhausted('192.0.2.1')).toBeUndefined()
    failures.count('192.0.2.1')
    time += 1_000
  }
  expect(failures.exhausted('192.0.2.1')).toBe(WINDOW - 3_000)
  expect(failures.exhausted('192.0.2.2')).toBeUndefined()
  // More of them do not make it longer.
  failures.count('192.0.2.1')
  time += WINDOW - 3_001
  expect(failures.exhausted('192.0.2.1')).toBe(1)
  time += 1
  expect(failures.exhausted('192.0.2.1')).toBeUndefined()
  failures.count('192.0.2.1')
  expect(failures.exhausted('192.0.2.1')).toBeUndefined()
})

test('whoever comes from many addresses takes bounded memory, and those that came last are known', () => {
  const failures = createFailures(() => 0, 1)
  const addressOf = (place: number) => `10.${place >> 16}.${(place >> 8) & 255}.${place & 255}`
  for (let place = 0; place < 2 * ADDRESSES_REMEMBERED; place++) failures.count(addressOf(place))
  expect(failures.exhausted(addressOf(0))).toBeUndefined()
  expect(failures.exhausted(addressOf(ADDRESSES_REMEMBERED))).toBe(WINDOW)
  expect(failures.exhausted(addressOf(2 * ADDRESSES_REMEMBERED - 1))).toBe(WINDOW)
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
