import { describe, expect, test } from 'vitest'
import { WATCHDOG_GAP_MS } from '../../../projector/limits.ts'
import { type StandingPartition, Watchdog } from '../../../projector/stream/watchdog.ts'

const STUCK = 60_000
const SECOND = 1_000

/** One that is looked after every second, from an instant that is not 0. */
const setUp = () => {
  const watchdog = new Watchdog(STUCK)
  let time = 1_700_000_000_000
  const look = (partitions: readonly StandingPartition[], inGroup = true) =>
    watchdog.look(time, { inGroup, partitions })
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

const at = (searchableTo: number, others: Partial<StandingPartition> = {}): StandingPartition => ({
  partition: 3,
  phase: 'reading',
  readTo: searchableTo,
  writtenTo: searchableTo,
  searchableTo,
  end: 100,
  ...others,
})
const still = () => [at(10)]

describe('a partition', () => {
  test('in which nothing moves for a minute, with records beyond its position, is stuck', () => {
    const { look, pass } = setUp()
    expect(look(still())).toBeUndefined()
    expect(pass(STUCK - SECOND, still)).toBeUndefined()
    expect(pass(SECOND, still)).toEqual(at(10))
  })

  test('is named among others that move', () => {
    const { pass } = setUp()
    const partitions = (elapsed: number) => [
      at(elapsed, { partition: 0, end: 1_000_000 }),
      at(10),
      at(100, { partition: 4 }),
    ]
    expect(pass(2 * STUCK, partitions)).toMatchObject({ partition: 3 })
  })

  test('is stuck with what it has read, too, wherever the partition ended when that was last seen', () => {
    expect(setUp().pass(2 * STUCK, () => [at(10, { end: 10, readTo: 12 })])).toMatchObject({ partition: 3 })
  })

  test('is stuck before it is read from, if it never is', () => {
    expect(setUp().pass(2 * STUCK, () => [at(10, { phase: 'verifying', end: 10 })])).toMatchObject({ partition: 3 })
    const unknown = { phase: 'positioning', readTo: -1, writtenTo: -1, searchableTo: -1, end: -1 }
    expect(setUp().pass(2 * STUCK, () => [at(10, unknown)])).toMatchObject({ partition: 3 })
  })

  test.each<[string, (elapsed: number) => StandingPartition]>([
    ['that has reached its end', () => at(100)],
    // The end is the last stable offset.
    ['behind which only an open transaction lies', () => at(100, { readTo: 100, end: 100 })],
    ['that publishes a little now and then', elapsed => at(10 + Math.floor(elapsed / 50_000))],
    ['that reads', elapsed => at(10, { readTo: 10 + Math.floor(elapsed / 50_000) })],
    ['that writes', elapsed => at(10, { readTo: 90, writtenTo: 10 + Math.floor(elapsed / 50_000) })],
  ])('%s is not stuck', (_, standing) => {
    const { pass } = setUp()
    expect(pass(20 * STUCK, elapsed => [standing(elapsed)])).toBeUndefined()
  })

  test('of which a large batch takes many slow requests is not stuck', () => {
    const { watchdog, pass } = setUp()
    const meanwhile = (elapsed: number): void => {
      if (elapsed % 50_000 === 0) watchdog.moved(3, 1)
    }
    expect(pass(20 * STUCK, still, { meanwhile })).toBeUndefined()
  })

  test('that waited long is not stuck at once when there is work again', () => {
    const { pass } = setUp()
    expect(pass(10 * STUCK, () => [at(100)])).toBeUndefined()
    expect(pass(STUCK - SECOND, () => [at(100, { end: 101 })])).toBeUndefined()
  })

  test('that went to another process and comes back is counted anew', () => {
    const { pass } = setUp()
    for (let time = 0; time < 5; time++) {
      expect(pass(STUCK - SECOND, still)).toBeUndefined()
      expect(pass(SECOND, () => [])).toBeUndefined()
    }
  })
})

describe('time does not count', () => {
  test('while Kafka or Elasticsearch does not answer, and begins anew when they do', () => {
    const { watchdog, pass } = setUp()
    expect(pass(STUCK - SECOND, still)).toBeUndefined()
    // The pauses between tries grow to five seconds; a try may take thirty.
    const meanwhile = (elapsed: number): void => {
      if (elapsed % 35_000 === 0) watchdog.disturbed()
    }
    watchdog.disturbed()
    expect(pass(20 * STUCK, still, { meanwhile })).toBeUndefined()
    watchdog.disturbed()
    expect(pass(STUCK, still)).toBeUndefined()
    expect(pass(SECOND, still)).toMatchObject({ partition: 3 })
  })

  test('backwards, where the clock is set back: what is stuck is found all the same', () => {
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

  test('for partitions while the group shares them out', () => {
    const { pass } = setUp()
    for (let time = 0; time < 20; time++) {
      // Others come and go all the time; in between there is a moment to get on.
      expect(pass(45 * SECOND, still, { inGroup: false })).toBeUndefined()
      expect(pass(2 * SECOND, elapsed => [at(time + elapsed / SECOND)])).toBeUndefined()
    }
  })
})

describe('a client', () => {
  test('that does not get into its group for a minute is stuck', () => {
    const { pass } = setUp()
    expect(pass(STUCK - SECOND, still, { inGroup: false })).toBeUndefined()
    expect(pass(2 * SECOND, still, { inGroup: false })).toBe('out of the group')
  })

  test('that loses its way again and again, and never gets anywhere in between, is stuck', () => {
    const { watchdog, pass } = setUp()
    let stuck: unknown
    for (let time = 0; time < 20 && stuck === undefined; time++) {
      pass(2 * SECOND, () => [], { inGroup: false })
      // It reads and writes the same each time.
      watchdog.began(3)
      stuck = pass(10 * SECOND, elapsed => [at(10, { readTo: 10 + Math.min(5, elapsed / SECOND) })], {
        meanwhile: () => watchdog.moved(3, 2),
      })
    }
    expect(stuck).toMatchObject({ partition: 3, searchableTo: 10 })
  })
})
