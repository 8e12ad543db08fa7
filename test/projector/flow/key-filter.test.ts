import { expect, test } from 'vitest'
import { KeyFilter } from '../../../projector/flow/key-filter.ts'

const keys = (from: number, count: number) =>
  Array.from({ length: count }, (_, at) => `payouts/org_${(from + at) % 50}:payout_${(from + at).toString(36)}`)

test('what was added is always taken for seen', () => {
  const filter = new KeyFilter()
  for (const key of keys(0, 200_000)) filter.add(key)
  expect(keys(0, 200_000).filter(key => !filter.hasSeen(key))).toEqual([])
})

test('of what was not added hardly anything is: one in a thousand with two million keys', { timeout: 60_000 }, () => {
  const filter = new KeyFilter()
  for (let part = 0; part < 20; part++) for (const key of keys(part * 100_000, 100_000)) filter.add(key)
  expect(keys(2_000_000, 100_000).filter(key => filter.hasSeen(key)).length).toBeLessThan(300)
})

test('nothing was seen at first, not even the empty key', () => {
  expect(new KeyFilter().hasSeen('')).toBe(false)
})
