import { expect, test } from 'vitest'
import { createRefusalLog } from '../../../api/http/log.ts'
import {
  ADDRESSES_REMEMBERED,
  REFUSALS_LOGGED,
  REFUSALS_LOGGED_IN_ALL,
  REFUSALS_LOGGED_SECONDS,
} from '../../../api/limits.ts'

test('a flood from one address logs a few lines per window; the next window starts with the number of dropped lines', () => {
  let time = 0
  const admit = createRefusalLog(() => time)
  const flood = Array.from({ length: 1_000 }, () => admit('192.0.2.1'))
  expect(flood.filter(line => line !== undefined)).toEqual(Array(REFUSALS_LOGGED).fill({ unlogged: 0 }))
  expect(admit('192.0.2.2')).toEqual({ unlogged: 0 })
  time = REFUSALS_LOGGED_SECONDS * 1_000
  expect([admit('192.0.2.1'), admit('192.0.2.1')]).toEqual([{ unlogged: 1_000 - REFUSALS_LOGGED }, { unlogged: 0 }])
})

test('a flood from very many addresses logs a bounded number of lines', () => {
  const admit = createRefusalLog(() => 0)
  const addresses = Array.from(
    { length: 2 * ADDRESSES_REMEMBERED },
    (_, n) => `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`,
  )
  const lines = addresses.filter(address => admit(address) !== undefined)
  expect(lines.length).toBe(REFUSALS_LOGGED_IN_ALL)
})
