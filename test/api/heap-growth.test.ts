/** How far the heap of an API process may grow between two collections. */
import { expect, test } from 'vitest'
import { createHeapGrowth } from '../../api/heap-growth.ts'
import { HEAP_GROWTH_BYTES } from '../../api/limits.ts'

const MiB = 1024 * 1024

const setUp = () => {
  const percents: number[] = []
  return { percents, growth: createHeapGrowth(percent => void percents.push(percent)) }
}

test('a small heap grows to four times its size, and a large one by a number of bytes, never by less than half', () => {
  const { percents, growth } = setUp()
  expect(percents).toEqual([300])
  for (const left of [20, 32, 48, 96, 192, 1_000]) growth.collected(left * MiB)
  expect(percents).toEqual([300, 200, 100, 50])
})

test('the bytes that it may grow by are never exceeded while less than twice as many are left', () => {
  for (let left = MiB; left < 2 * HEAP_GROWTH_BYTES; left += MiB) {
    const { percents, growth } = setUp()
    growth.collected(left)
    expect(((percents.at(-1) ?? 0) / 100) * left).toBeLessThanOrEqual(HEAP_GROWTH_BYTES)
  }
})

test('while many answers are held it grows by half, and as before afterwards', () => {
  const { percents, growth } = setUp()
  growth.collected(64 * MiB)
  growth.holdMuch(true)
  growth.collected(48 * MiB)
  growth.holdMuch(false)
  expect(percents).toEqual([300, 150, 50, 200])
})
