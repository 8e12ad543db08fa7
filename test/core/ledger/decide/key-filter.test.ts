import { expect, onTestFinished, test, vi } from 'vitest'
import { KeyFilter } from '../../../../core/ledger/decide/key-filter.ts'

const keys = (from: number, count: number) =>
  Array.from({ length: count }, (_, at) => `payouts/org_${(from + at) % 50}:payout_${(from + at).toString(36)}`)

test('an added key is always reported as seen', () => {
  const filter = new KeyFilter()
  for (const key of keys(0, 200_000)) filter.add(key)
  expect(keys(0, 200_000).filter(key => !filter.hasSeen(key))).toEqual([])
})

test('of two million keys that were not added, fewer than three in a thousand are reported as seen', () => {
  const filter = new KeyFilter()
  for (let part = 0; part < 20; part++) for (const key of keys(part * 100_000, 100_000)) filter.add(key)
  expect(keys(2_000_000, 100_000).filter(key => filter.hasSeen(key)).length).toBeLessThan(300)
})

test('of ten million keys that were not added, one in a hundred is reported as seen at most; with a tenth of the size more are', () => {
  const wrong = [1, 0.1].map(share => {
    const filter = new KeyFilter(share)
    for (let part = 0; part < 100; part++) for (const key of keys(part * 100_000, 100_000)) filter.add(key)
    expect(keys(0, 10_000).filter(key => !filter.hasSeen(key))).toEqual([])
    return keys(10_000_000, 100_000).filter(key => filter.hasSeen(key)).length
  })

  expect(wrong[0]).toBeLessThan(1_000)
  expect(wrong[1]).toBeGreaterThan(10_000)
})

test('an empty filter has seen no key, not even the empty one', () => {
  expect(new KeyFilter().hasSeen('')).toBe(false)
})

test('a filter of few keys takes 64 KiB, of 100,000 keys half a MiB more; 4 MiB come with more keys', () => {
  let bytes = 0
  const counting = class extends Uint32Array {
    constructor(words: number) {
      super(words)
      bytes += 4 * words
    }
  }
  vi.stubGlobal('Uint32Array', counting)
  onTestFinished(() => void vi.unstubAllGlobals())
  const filter = new KeyFilter()
  const bytesWith = [0, 1_000, 100_000, 200_000].map(count => {
    for (const key of keys(0, count)) filter.add(key)
    return bytes
  })
  expect(bytesWith).toEqual([0, 2 ** 16, 2 ** 16 + 2 ** 19, 2 ** 16 + 2 ** 19 + 2 ** 22])
})
