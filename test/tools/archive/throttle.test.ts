/** The limit of the records a second: exact over time, without bursts, and over at a signal. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createThrottle, fetchBytesAt } from '../../../tools/archive/throttle.ts'
import { reportProgress } from '../../../tools/generations/progress.ts'
import {
  FETCHED_AT_ONCE_BYTES,
  FETCHED_BYTES,
  FETCHED_BYTES_MIN,
  THROTTLE_SLACK_MS,
  THROTTLE_WAIT_MS,
  THROTTLED_BYTES,
} from '../../../tools/limits.ts'
import { seedOfRun } from '../../support/random.ts'

const seed = seedOfRun()
console.log(`seed ${seed}`)

/** A clock that only sleeps and work move on. */
const createWorld = () => {
  const stopping = new AbortController()
  let time = 5_000
  const slept: number[] = []
  return {
    slept,
    stopping,
    signal: stopping.signal,
    elapsed: () => time,
    work: (milliseconds: number): void => {
      time += milliseconds
    },
    sleep: async (milliseconds: number): Promise<void> => {
      slept.push(milliseconds)
      time += milliseconds
    },
  }
}

test('in any stretch of time no more records pass than the limit permits, but for the slack', async () => {
  const work = fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: 0, max: 5_000 }))
  const step = fc.record({ records: fc.integer({ min: 1, max: 500 }), work })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60 }), async steps => {
      const world = createWorld()
      const maxRate = 10_000
      const throttle = createThrottle(maxRate, world)
      const passed: { readonly at: number; readonly records: number }[] = []
      for (const { records, work } of steps) {
        world.work(work)
        passed.push({ at: world.elapsed(), records })
        await throttle(records)
      }
      for (const [from, { at: began }] of passed.entries()) {
        let sum = 0
        for (const { at, records } of passed.slice(from)) {
          const most = ((at - began + THROTTLE_SLACK_MS) * maxRate) / 1_000
          // The records of one step pass together.
          expect(sum).toBeLessThanOrEqual(most + 1e-6)
          sum += records
        }
      }
    }),
    { seed },
  )
})

test('short delays are made up for: the rate is the limit, although each step takes a part of its time', async () => {
  const world = createWorld()
  const throttle = createThrottle(20_000, world)
  const began = world.elapsed()
  for (let step = 0; step < 100; step++) {
    world.work(15)
    await throttle(500)
  }
  expect(world.elapsed() - began).toBe((100 * 500 * 1_000) / 20_000)
})

test('partitions that append at the same time share the limit', async () => {
  const world = createWorld()
  const throttle = createThrottle(1_000, world)
  const began = world.elapsed()
  await Promise.all(Array.from({ length: 4 }, () => throttle(25)))
  expect(world.elapsed() - began).toBeGreaterThanOrEqual(100)
})

test('a signal ends a long wait at once, and without a limit there is no wait', async () => {
  const world = createWorld()
  const sleep = async (milliseconds: number): Promise<void> => {
    await world.sleep(milliseconds)
    world.stopping.abort()
  }
  const throttle = createThrottle(1, { ...world, sleep })
  await throttle(1_000)
  expect(world.slept).toEqual([THROTTLE_WAIT_MS])
  await createThrottle(Number.POSITIVE_INFINITY, world)(1_000_000)
  expect(world.slept).toEqual([THROTTLE_WAIT_MS])
})

test('fetches of many partitions at once are smaller, so that all of them together are bounded', () => {
  const unlimited = Number.POSITIVE_INFINITY
  expect([1, 16].map(partitions => fetchBytesAt(unlimited, partitions))).toEqual([FETCHED_BYTES, FETCHED_BYTES])
  for (const partitions of [17, 100, 1_000])
    expect(fetchBytesAt(unlimited, partitions) * partitions).toBeLessThanOrEqual(FETCHED_AT_ONCE_BYTES)
  expect(fetchBytesAt(unlimited, 100_000)).toBe(FETCHED_BYTES_MIN)
  expect([1, 100].map(partitions => fetchBytesAt(20_000, partitions))).toEqual([THROTTLED_BYTES, THROTTLED_BYTES])
  expect(fetchBytesAt(20_000, 1_000) * 1_000).toBeLessThanOrEqual(FETCHED_AT_ONCE_BYTES)
})

test('the progress line names the limit, if there is one', () => {
  const world = createWorld()
  let drawn = ''
  const draw = (line: string): void => {
    drawn = line
  }
  const lineWith = (maxRate?: number): string => {
    const report = reportProgress({ elapsed: world.elapsed, say: () => undefined, draw }, maxRate)
    report({ done: 0, total: 100_000 })
    world.work(1_000)
    report({ done: 10_000, total: 100_000 })
    world.work(2_000)
    report({ done: 30_000, total: 100_000 })
    return drawn
  }
  expect(lineWith(20_000)).toBe('30000 of 100000 records, 10000 of at most 20000 a second, 7 s left')
  expect(lineWith()).toBe('30000 of 100000 records, 10000 a second, 7 s left')
})
