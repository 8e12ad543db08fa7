import { describe, expect, test } from 'vitest'
import { WATCHDOG_GAP_MS } from '../../../../core/projection/limits.ts'
import { type StandingPartition, Watchdog } from '../../../../core/projection/progress/watchdog.ts'

const STUCK = 60_000
const SECOND = 1_000

/** A watchdog that looks every second. The clock does not start at 0. */
const setUp = () => {
  const watchdog = new Watchdog(STUCK)
  let time = 1_700_000_000_000
  const look = (partitions: readonly StandingPartition[], inGroup = true) =>
    watchdog.check(time, { inGroup, partitions })
  const pass = (
    milliseconds: number,
    standing: (elapsed: number) => readonly StandingPartition[],
    { inGroup = true, meanwhile = (_: number): void => undefined } = {},
  ) => {
    for (let elapsed = SECOND; elapsed <= milliseconds; elapsed += SECOND) {
      time += SECOND
      meanwhile(elapsed)
      const stuck = look(standing(elapsed), inGroup)
      if (stuck !== undefined) return stuck
    }
    return undefined
  }
  const freeze = (milliseconds: number): void => {
    time += milliseconds
  }
  return { watchdog, look, pass, freeze }
}

const at = (publishedTo: number, others: Partial<StandingPartition> = {}): StandingPartition => ({
  partition: 3,
  phase: 'reading',
  readTo: publishedTo,
  writtenTo: publishedTo,
  publishedTo,
  end: 100,
  ...others,
})
const still = () => [at(10)]

describe('a partition', () => {
  test('that makes no progress for a minute, with records beyond its position, is stuck', () => {
    const { look, pass } = setUp()
    expect(look(still())).toBeUndefined()
    expect(pass(STUCK - SECOND, still)).toBeUndefined()
    expect(pass(SECOND, still)).toEqual(at(10))
  })

  test('is named among others that make progress', () => {
    const { pass } = setUp()
    const partitions = (elapsed: number) => [
      at(elapsed, { partition: 0, end: 1_000_000 }),
      at(10),
      at(100, { partition: 4 }),
    ]
    expect(pass(2 * STUCK, partitions)).toMatchObject({ partition: 3 })
  })

  test('is also stuck with records that it has read, whatever its last known end', () => {
    expect(setUp().pass(2 * STUCK, () => [at(10, { end: 10, readTo: 12 })])).toMatchObject({ partition: 3 })
  })

  test('is stuck if its first read never happens', () => {
    expect(setUp().pass(2 * STUCK, () => [at(10, { phase: 'verifying', end: 10 })])).toMatchObject({ partition: 3 })
    const unknown = { phase: 'positioning' as const, readTo: -1, writtenTo: -1, publishedTo: -1, end: -1 }
    expect(setUp().pass(2 * STUCK, () => [at(10, unknown)])).toMatchObject({ partition: 3 })
  })

  test.each<[string, (elapsed: number) => StandingPartition]>([
    ['that has reached its end', () => at(100)],
    // The end is the last stable offset.
    ['with only an open transaction beyond its position', () => at(100, { readTo: 100, end: 100 })],
    ['that sometimes publishes a little', elapsed => at(10 + Math.floor(elapsed / 50_000))],
    ['that reads', elapsed => at(10, { readTo: 10 + Math.floor(elapsed / 50_000) })],
    ['that writes', elapsed => at(10, { readTo: 90, writtenTo: 10 + Math.floor(elapsed / 50_000) })],
  ])('%s is not stuck', (_, standing) => {
    const { pass } = setUp()
    expect(pass(20 * STUCK, elapsed => [standing(elapsed)])).toBeUndefined()
  })

  test('with a large batch in many slow requests is not stuck', () => {
    const { watchdog, pass } = setUp()
    const meanwhile = (elapsed: number): void => {
      if (elapsed % 50_000 === 0) watchdog.onProgress(3, 1)
    }
    expect(pass(20 * STUCK, still, { meanwhile })).toBeUndefined()
  })

  test('that had nothing to do for long is not stuck at once when there is work again', () => {
    const { pass } = setUp()
    expect(pass(10 * STUCK, () => [at(100)])).toBeUndefined()
    expect(pass(STUCK - SECOND, () => [at(100, { end: 101 })])).toBeUndefined()
  })

  test('that went to another process and comes back starts a new minute', () => {
    const { pass } = setUp()
    for (let time = 0; time < 5; time++) {
      expect(pass(STUCK - SECOND, still)).toBeUndefined()
      expect(pass(SECOND, () => [])).toBeUndefined()
    }
  })
})

describe('time does not count', () => {
  test('while Kafka or Elasticsearch does not answer, and starts again afterwards', () => {
    const { watchdog, pass } = setUp()
    expect(pass(STUCK - SECOND, still)).toBeUndefined()
    // The pauses between attempts grow to five seconds, and an attempt may take thirty.
    const meanwhile = (elapsed: number): void => {
      if (elapsed % 35_000 === 0) watchdog.onDisturbed()
    }
    watchdog.onDisturbed()
    expect(pass(20 * STUCK, still, { meanwhile })).toBeUndefined()
    watchdog.onDisturbed()
    expect(pass(STUCK, still)).toBeUndefined()
    expect(pass(SECOND, still)).toMatchObject({ partition: 3 })
  })

  test('backwards when the clock is set back: a stuck partition is still found', () => {
    const { pass, freeze } = setUp()
    expect(pass(STUCK / 2, () => [at(50)])).toBeUndefined()
    freeze(-3_600_000)
    expect(pass(STUCK, () => [at(50)])).toBeDefined()
  })

  test('while this process was frozen', () => {
    const { look, pass, freeze } = setUp()
    expect(pass(STUCK - 10 * SECOND, still)).toBeUndefined()
    freeze(3_600_000)
    expect(look(still())).toBeUndefined()
    expect(WATCHDOG_GAP_MS).toBeLessThan(10 * SECOND)
  })

  test('for partitions that wait for the check of the source, while it reads on', () => {
    const { watchdog, pass } = setUp()
    const waiting = () => [at(10, { phase: 'positioning' })]
    expect(pass(STUCK - SECOND, waiting)).toBeUndefined()
    const meanwhile = () => watchdog.onSourceRead()
    expect(pass(20 * STUCK, waiting, { meanwhile })).toBeUndefined()
    expect(pass(2 * SECOND, waiting)).toMatchObject({ partition: 3, phase: 'positioning' })
  })

  test('but it does for a partition that reads, while the check of the source reads on', () => {
    const { watchdog, pass } = setUp()
    expect(pass(2 * STUCK, still, { meanwhile: () => watchdog.onSourceRead() })).toMatchObject({ partition: 3 })
  })

  test('for partitions during a rebalance', () => {
    const { pass } = setUp()
    for (let time = 0; time < 20; time++) {
      // Members join and leave all the time. Between two rebalances there is a moment to make progress.
      expect(pass(45 * SECOND, still, { inGroup: false })).toBeUndefined()
      expect(pass(2 * SECOND, elapsed => [at(time + elapsed / SECOND)])).toBeUndefined()
    }
  })
})

describe('a client', () => {
  test('that cannot join its group for a minute is stuck', () => {
    const { pass } = setUp()
    expect(pass(STUCK - SECOND, still, { inGroup: false })).toBeUndefined()
    expect(pass(2 * SECOND, still, { inGroup: false })).toBe('out of the group')
  })

  test('that restarts again and again without progress is stuck', () => {
    const { watchdog, pass } = setUp()
    let stuck: unknown
    for (let time = 0; time < 20 && stuck === undefined; time++) {
      pass(2 * SECOND, () => [], { inGroup: false })
      // It reads and writes the same records each time.
      watchdog.onStarted(3)
      stuck = pass(10 * SECOND, elapsed => [at(10, { readTo: 10 + Math.min(5, elapsed / SECOND) })], {
        meanwhile: () => watchdog.onProgress(3, 2),
      })
    }
    expect(stuck).toMatchObject({ partition: 3, publishedTo: 10 })
  })
})
