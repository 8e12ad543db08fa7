/** The time that a rebuild or a replay says it still needs. */
import { expect, test } from 'vitest'
import { createTimeLeft } from '../../tools/time-left.ts'

/** @param doneAt records that are done at a moment in milliseconds */
const told = (doneAt: (at: number) => number, total: number, until: number, step = 500) => {
  let at = 0
  const timeLeft = createTimeLeft(() => at)
  const seconds: { readonly at: number; readonly seconds: number | undefined }[] = []
  for (; at <= until; at += step) seconds.push({ at, seconds: timeLeft(doneAt(at), total).seconds })
  return seconds
}

test('a replay that connects for 4 s and then needs 20 s says about 20 s', () => {
  const slow = (at: number) => Math.min(100, Math.max(0, (at - 4_000) / 20))
  const rest = (at: number) => Math.max(0, at - 6_000) * 5.55
  const all = told(at => Math.min(100_000, Math.floor(slow(at) + rest(at))), 100_000, 24_000)
  const worst = all.filter(({ at }) => at >= 8_000)
  for (const { at, seconds = Number.POSITIVE_INFINITY } of worst) expect(seconds, `at ${at} ms`).toBeLessThan(60)
  for (const { at, seconds = 0 } of all.filter(({ at }) => at >= 12_000)) {
    expect(Math.abs(seconds - (24 - at / 1_000)), `at ${at} ms`).toBeLessThan(8)
  }
})

test('the time counts down at an even rate, and is the true one', () => {
  const all = told(at => at, 60_000, 60_000)
  for (const { at, seconds } of all.filter(({ at }) => at >= 3_000)) expect(seconds).toBe(Math.ceil(60 - at / 1_000))
})

test('an uneven rate never makes the time go up for a moment', () => {
  // Of two batches in 4 s, one comes after 1 s.
  const all = told(at => Math.floor(at / 4_000) * 4_000 + (at % 4_000 >= 1_000 ? 2_000 : 0), 60_000, 59_000)
  const shown = all.flatMap(({ seconds }) => (seconds === undefined ? [] : [seconds]))
  expect(shown.length).toBeGreaterThan(100)
  for (const [index, seconds] of shown.entries()) {
    expect(seconds).toBeLessThanOrEqual(shown[index - 1] ?? Number.POSITIVE_INFINITY)
  }
})

test('a rate that falls for long makes the time go up once, to the new time', () => {
  const all = told(at => (at < 20_000 ? at : 20_000 + (at - 20_000) / 10), 60_000, 60_000)
  const seconds = all.at(-1)?.seconds ?? 0
  // 36,000 records are left, at 100 a second.
  expect(Math.abs(seconds - 360)).toBeLessThan(20)
})

test('a replay that stands still does not know when it ends', () => {
  const all = told(at => Math.min(at, 10_000), 60_000, 40_000)
  expect(all.at(-1)?.seconds).toBeUndefined()
})

test('no time is told before two seconds of progress', () => {
  expect(told(() => 0, 100, 30_000).every(({ seconds }) => seconds === undefined)).toBe(true)
  expect(told(at => at, 60_000, 1_500).every(({ seconds }) => seconds === undefined)).toBe(true)
})
