import { describe, expect, test } from 'vitest'
import { networksOf } from '../../../core/reading/networks.ts'

const isIn = (networks: readonly unknown[], address: string | undefined): boolean | undefined =>
  networksOf(networks)?.(address)

describe('an address', () => {
  test.each([
    ['10.1.2.3', ['10.0.0.0/8'], true],
    ['11.0.0.0', ['10.0.0.0/8'], false],
    ['203.0.113.7', ['203.0.113.7/32'], true],
    ['203.0.113.8', ['203.0.113.7/32'], false],
    ['203.0.113.7', ['203.0.113.255/24'], true],
    ['192.0.2.1', ['10.0.0.0/8', '192.0.2.0/24'], true],
    ['192.0.2.1', ['0.0.0.0/0'], true],
    ['2001:db8::1', ['2001:DB8::/32'], true],
    ['2001:db9::1', ['2001:db8::/32'], false],
    ['fe80::1%eth0', ['fe80::/10'], true],
    ['::1', ['::/0'], true],
    ['::1', ['0.0.0.0/0'], false],
  ])('%s in %j: %s', (address, networks, expected) => {
    expect(isIn(networks, address)).toBe(expected)
  })

  test.each(['::ffff:10.1.2.3', '::FFFF:a01:203', '0:0:0:0:0:ffff:10.1.2.3'])(
    'in IPv6 form counts as IPv4: %s',
    address => {
      expect(isIn(['10.0.0.0/8'], address)).toBe(true)
      for (const networks of [['11.0.0.0/8'], ['::/0'], ['::ffff:a00:0/104']]) {
        expect(isIn(networks, address)).toBe(false)
      }
    },
  )

  test('of IPv4 is in no network of IPv6', () => {
    for (const networks of [['::/0'], ['::ffff:a00:0/104']]) expect(isIn(networks, '10.1.2.3')).toBe(false)
  })

  test.each([undefined, '', 'unknown', '10.0.0', '10.0.0.1:8080'])(
    'that cannot be read is in no network: %s',
    address => {
      expect(isIn(['0.0.0.0/0', '::/0'], address)).toBe(false)
    },
  )
})

test.each([['office'], ['10.0.0.0'], ['10.0.0.0/33'], [undefined], [10]])(
  'one text that is no network makes the whole list unreadable: %s',
  network => {
    expect(networksOf(['10.0.0.0/8', network])).toBeUndefined()
  },
)
