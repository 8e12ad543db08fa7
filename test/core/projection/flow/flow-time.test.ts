import { describe, expect, test } from 'vitest'
import {
  PARTITION_BYTES_IN_FLIGHT,
  PARTITIONS_OF_FULL_SIZE,
  RECORDS_LATE_MS,
} from '../../../../core/projection/limits.ts'
import { CLOCKS_APART_MS } from '../../../../core/store/limits.ts'
import { everythingRuns } from '../../../projector/held.ts'
import { both, heavyBatch, lookAt, repsOf, startFlow } from '../../../projector/running-flow.ts'

describe('the time up to which everything is published', () => {
  test('is that of the observation whose end is now published', async () => {
    const { flow, take, published, story } = startFlow()
    lookAt(flow, 3, both(100))
    await take(repsOf(0, 2))
    expect(published().time).toBe(0)
    await take(repsOf(2, 3))
    expect(published()).toMatchObject({ position: 5, time: 100 })
    expect(story.filter(step => step.startsWith('time'))).toEqual(['time 100'])
  })

  test('advances with each observation while the partition has caught up', async () => {
    const { flow, take, published } = startFlow()
    await take(repsOf(0, 2))
    for (const time of [100, 200, 300]) {
      lookAt(flow, 2, both(time))
      await everythingRuns()
      expect(published().time).toBe(time)
    }
  })

  test('is never that of an observation whose end is not yet published', async () => {
    const { flow, take, published, hold, writes } = startFlow()
    hold('writes')
    lookAt(flow, 0, both(100))
    await take(repsOf(0, 2))
    lookAt(flow, 2, both(200))
    lookAt(flow, 3, both(300))
    await everythingRuns()
    expect(published().time).toBe(100)
    await writes.at(0).letGo()
    expect(published()).toMatchObject({ position: 2, time: 200 })
  })

  test('advances under a steady stream, although the position never reaches the current end', async () => {
    const { flow, take, published } = startFlow()
    const times: number[] = []
    for (let second = 1; second <= 5; second++) {
      lookAt(flow, second * 10, both(second * 1_000))
      await take(repsOf((second - 1) * 10 + (second === 1 ? 0 : 5), second === 1 ? 15 : 10))
      times.push(published().time)
    }
    expect(times).toEqual([1_000, 2_000, 3_000, 4_000, 5_000])
  })

  test('stands still while records are behind an open transaction, which nobody can read yet', async () => {
    const { flow, take, published } = startFlow()
    await take(repsOf(0, 2))
    lookAt(flow, 2, both(100))
    await everythingRuns()
    for (const time of [200, 300]) {
      lookAt(flow, 2, both(time), { logEnd: 4 })
      await everythingRuns()
      expect(published()).toMatchObject({ position: 2, time: 100 })
    }
    await take(repsOf(2, 2))
    expect(published()).toMatchObject({ position: 4, time: 300 })
  })

  test('advances under a steady stream after a look that did not learn where open transactions end', async () => {
    const { flow, take, published } = startFlow()
    const times: number[] = []
    lookAt(flow, 0, both(500), { logEnd: Number.POSITIVE_INFINITY })
    lookAt(flow, 10, both(1_000))
    for (let second = 2; second <= 5; second++) {
      lookAt(flow, second * 10, both(second * 1_000))
      await take(repsOf((second - 2) * 10, 10))
      times.push(published().time)
    }
    expect(times).toEqual([1_000, 2_000, 3_000, 4_000])
  })

  test('becomes that of the oldest observation first, and then that of the latest', async () => {
    const { flow, take, published } = startFlow()
    for (const [end, time] of [
      [2, 100],
      [4, 200],
      [6, 300],
    ] as const)
      lookAt(flow, end, both(time))
    await take(repsOf(0, 3))
    expect(published().time).toBe(100)
    await take(repsOf(3, 3))
    expect(published().time).toBe(300)
  })
})

describe('when clocks disagree', () => {
  const caughtUp = async () => {
    const running = startFlow()
    await running.take(repsOf(0, 2))
    const look = async (reached: number, latest = reached) => {
      lookAt(running.flow, 2, { reached, latest })
      await everythingRuns()
      return running.published().time
    }
    return { ...running, look }
  }

  test('the time that both clocks have reached is published; a time that only one has reached is never taken back', async () => {
    const { look, story } = await caughtUp()
    expect(await look(100_000, 3_700_000)).toBe(100_000)
    expect(await look(100_400)).toBe(100_400)
    // One clock is set back by an hour: the time stands still.
    expect(await look(-3_499_200, 100_800)).toBe(100_400)
    expect(story.filter(step => step.startsWith('take'))).toEqual([])
  })

  test('a time ahead of both clocks is taken back; within CLOCKS_APART_MS it stands still', async () => {
    const { look, story } = await caughtUp()
    expect(await look(100_000)).toBe(100_000)
    expect(await look(100_000 - CLOCKS_APART_MS)).toBe(100_000)
    expect(await look(90_000, 90_500)).toBe(90_000)
    expect(story.filter(step => step.startsWith('take'))).toEqual(['take back to 90000'])
    expect(await look(90_400)).toBe(90_400)
  })

  test('a time is taken back only once the end that the observation saw is published', async () => {
    const { flow, look, published } = await caughtUp()
    await look(100_000)
    lookAt(flow, 3, both(50_000))
    await everythingRuns()
    expect(published().time).toBe(100_000)
  })

  test('a time ahead of both clocks is taken back under a steady stream too', async () => {
    const { flow, look, take, published } = await caughtUp()
    await look(3_600_000)
    for (let second = 1; second <= 3; second++) {
      lookAt(flow, 2 + second * 10, both(second * 1_000))
      await take(repsOf(2 + (second - 1) * 10 + (second === 1 ? 0 : 5), second === 1 ? 15 : 10))
    }
    expect(published()).toMatchObject({ position: 37, time: 3_000 })
  })

  test('a time that another owner published after the clocks were read is not taken back: this process stood still', async () => {
    const { flow, look, take, story, parts, published } = await caughtUp()
    await look(100_000)
    lookAt(flow, 3, both(100_400))
    await parts.store.published.advanceTime(120_000)
    await take(repsOf(2, 1))
    // The clocks were read before this process stood still, and the ends after it.
    lookAt(flow, 3, both(100_800), { publishedUntil: 100_400 })
    await everythingRuns()
    expect(published()).toMatchObject({ position: 3, time: 120_000 })
    lookAt(flow, 3, both(101_200))
    await everythingRuns()
    expect(story.filter(step => step.startsWith('take'))).toEqual(['take back to 101200'])
  })

  test('observations made while both clocks were ahead are dropped', async () => {
    const { flow, look, take, published } = await caughtUp()
    await look(10_000)
    lookAt(flow, 3, both(3_600_000))
    await look(10_400)
    await take(repsOf(2, 1))
    expect(published().time).toBe(10_400)
  })

  test('without a reading of the clocks no time is published', async () => {
    const { flow, published } = await caughtUp()
    flow.sawEnd(2)
    await everythingRuns()
    expect(published().time).toBe(0)
  })

  describe('and the timestamps of the broker are behind', () => {
    const appended = (offset: number, time: number) => ({ ...repsOf(offset, 1), appended: { offset, time } })

    test('the time stays behind with them, and a published time is taken back', async () => {
      const { flow, look, take, story, published } = await caughtUp()
      await look(100_000)
      await take(appended(2, 40_000))
      lookAt(flow, 3, both(100_400))
      await everythingRuns()
      expect(published().time).toBe(40_400)
      expect(story).toContain('records behind 60000')
      await take(appended(3, 100_500))
      lookAt(flow, 4, both(100_800))
      await everythingRuns()
      expect(published().time).toBe(100_800)
      expect(story).toContain('records behind 0')
    })

    test('a record that its broker held back until all replicas had it says nothing about the clock', async () => {
      const { look, take, flow, story, published } = await caughtUp()
      await look(100_000)
      await take(appended(2, 100_000 - RECORDS_LATE_MS))
      lookAt(flow, 3, both(100_400))
      await everythingRuns()
      expect(published().time).toBe(100_400)
      expect(story.filter(step => step.startsWith('records') || step.startsWith('take'))).toEqual([])
    })

    test('records older than the observation, slightly late, or of a transaction say nothing about the clock', async () => {
      const { flow, look, take, story } = await caughtUp()
      await look(100_000)
      await take(appended(2, 100_000 - CLOCKS_APART_MS))
      await take({ ...repsOf(3, 1), appended: 'transaction' })
      await take(appended(4, 1_000))
      lookAt(flow, 9, both(100_400))
      await take(appended(5, 1_000))
      expect(story.filter(step => step.startsWith('records'))).toEqual([])
    })
  })
})

describe('pressure', () => {
  const half = PARTITION_BYTES_IN_FLIGHT / 2

  test('is full above its limit, and over at half of it', async () => {
    const { take, hold, writes, pressure } = startFlow()
    hold('writes')
    await take(heavyBatch(0, half))
    await take(heavyBatch(1, half))
    expect(pressure).toEqual([])
    await take(heavyBatch(2, 1_000))
    expect(pressure).toEqual([true])
    await writes.at(0).letGo()
    expect(pressure).toEqual([true])
    await writes.at(0).letGo()
    expect(pressure).toEqual([true, false])
    await writes.at(0).letGo()
    expect(pressure).toEqual([true, false])
  })

  test('begins earlier if more partitions share the memory', async () => {
    const { take, hold, pressure } = startFlow({ partitions: 2 * PARTITIONS_OF_FULL_SIZE })
    hold('writes')
    await take(heavyBatch(0, half))
    expect(pressure).toEqual([])
    await take(heavyBatch(1, 1_000))
    expect(pressure).toEqual([true])
  })

  test('that was never full is never reported as over', async () => {
    const { take, hold, writes, pressure } = startFlow()
    hold('writes')
    await take(heavyBatch(0, half + 1_000))
    await writes.at(0).letGo()
    expect(pressure).toEqual([])
  })
})

describe('settled', () => {
  test('resolves at once if there is nothing to do', async () => {
    await startFlow().flow.waitUntilIdle()
  })

  test('resolves when every batch taken is published', async () => {
    const { flow, take, hold, refreshes, writes, published } = startFlow()
    hold('writes', 'refreshes')
    let settledAt: number | undefined
    await take(repsOf(0, 1))
    await take(repsOf(1, 1))
    const settled = flow.waitUntilIdle().then(() => {
      settledAt = published().position
    })
    for (const step of [writes, refreshes, writes, refreshes]) {
      expect(settledAt).toBeUndefined()
      await step.at(0).letGo()
    }
    await settled
    expect(settledAt).toBe(2)
  })
})
