import { describe, expect, test } from 'vitest'
import { CLOCKS_APART_MS, PARTITION_BYTES_IN_FLIGHT, RECORDS_LATE_MS } from '../../../projector/limits.ts'
import { everythingRuns } from '../held.ts'
import { both, heavyBatch, repsOf, startFlow } from '../running-flow.ts'

describe('the time up to which everything is included', () => {
  test('is that of the look which saw an end that is now published', async () => {
    const { flow, take, published, story } = startFlow()
    flow.sawEnd(3, both(100))
    await take(repsOf(0, 2))
    expect(published().time).toBe(0)
    await take(repsOf(2, 3))
    expect(published()).toMatchObject({ position: 5, time: 100 })
    expect(story.filter(step => step.startsWith('time'))).toEqual(['time 100'])
  })

  test('moves with each look while the partition is caught up', async () => {
    const { flow, take, published } = startFlow()
    await take(repsOf(0, 2))
    for (const time of [100, 200, 300]) {
      flow.sawEnd(2, both(time))
      await everythingRuns()
      expect(published().time).toBe(time)
    }
  })

  test('is never that of a look which saw more than is published', async () => {
    const { flow, take, published, hold, writes } = startFlow()
    hold('writes')
    flow.sawEnd(0, both(100))
    await take(repsOf(0, 2))
    flow.sawEnd(2, both(200))
    flow.sawEnd(3, both(300))
    await everythingRuns()
    expect(published().time).toBe(100)
    await writes.at(0).letGo()
    expect(published()).toMatchObject({ position: 2, time: 200 })
  })

  test('moves under a steady stream, though the position never reaches the present end', async () => {
    const { flow, take, published } = startFlow()
    const times: number[] = []
    for (let second = 1; second <= 5; second++) {
      flow.sawEnd(second * 10, both(second * 1_000))
      await take(repsOf((second - 1) * 10 + (second === 1 ? 0 : 5), second === 1 ? 15 : 10))
      times.push(published().time)
    }
    expect(times).toEqual([1_000, 2_000, 3_000, 4_000, 5_000])
  })

  test('comes true for the oldest look first, and then for the latest', async () => {
    const { flow, take, published } = startFlow()
    for (const [end, time] of [
      [2, 100],
      [4, 200],
      [6, 300],
    ] as const)
      flow.sawEnd(end, both(time))
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
      running.flow.sawEnd(2, { reached, latest })
      await everythingRuns()
      return running.published().time
    }
    return { ...running, look }
  }

  test('the time that both have reached is published, and one that was ahead alone is never taken back', async () => {
    const { look, story } = await caughtUp()
    expect(await look(100_000, 3_700_000)).toBe(100_000)
    expect(await look(100_400)).toBe(100_400)
    // One of them is set back by an hour: the time stands still.
    expect(await look(-3_499_200, 100_800)).toBe(100_400)
    expect(story.filter(step => step.startsWith('take'))).toEqual([])
  })

  test('a time that lies ahead of both is taken back, within a bound it stands still', async () => {
    const { look, story } = await caughtUp()
    expect(await look(100_000)).toBe(100_000)
    expect(await look(100_000 - CLOCKS_APART_MS)).toBe(100_000)
    expect(await look(90_000, 90_500)).toBe(90_000)
    expect(story.filter(step => step.startsWith('take'))).toEqual(['take back to 90000'])
    expect(await look(90_400)).toBe(90_400)
  })

  test('a time is taken back only once everything is published that the look saw', async () => {
    const { flow, look, published } = await caughtUp()
    await look(100_000)
    flow.sawEnd(3, both(50_000))
    await everythingRuns()
    expect(published().time).toBe(100_000)
  })

  test('a time ahead of both is taken back under a steady stream, too, though the position never reaches the present end', async () => {
    const { flow, look, take, published } = await caughtUp()
    await look(3_600_000)
    for (let second = 1; second <= 3; second++) {
      flow.sawEnd(2 + second * 10, both(second * 1_000))
      await take(repsOf(2 + (second - 1) * 10 + (second === 1 ? 0 : 5), second === 1 ? 15 : 10))
    }
    expect(published()).toMatchObject({ position: 37, time: 3_000 })
  })

  test('what was seen while they were ahead is published no more', async () => {
    const { flow, look, take, published } = await caughtUp()
    await look(10_000)
    flow.sawEnd(3, both(3_600_000))
    await look(10_400)
    await take(repsOf(2, 1))
    expect(published().time).toBe(10_400)
  })

  test('without a reading no time is told', async () => {
    const { flow, published } = await caughtUp()
    flow.sawEnd(2, undefined)
    await everythingRuns()
    expect(published().time).toBe(0)
  })

  describe('and the records of the broker are behind', () => {
    const appended = (offset: number, time: number) => ({ ...repsOf(offset, 1), appended: { offset, time } })

    test('the time stays behind with them, and what was published is taken back', async () => {
      const { flow, look, take, story, published } = await caughtUp()
      await look(100_000)
      await take(appended(2, 40_000))
      flow.sawEnd(3, both(100_400))
      await everythingRuns()
      expect(published().time).toBe(40_400)
      expect(story).toContain('records behind 60000')
      await take(appended(3, 100_500))
      flow.sawEnd(4, both(100_800))
      await everythingRuns()
      expect(published().time).toBe(100_800)
      expect(story).toContain('records behind 0')
    })

    test('a record that its broker held back until all copies had it says nothing of the clock', async () => {
      const { look, take, flow, story, published } = await caughtUp()
      await look(100_000)
      await take(appended(2, 100_000 - RECORDS_LATE_MS))
      flow.sawEnd(3, both(100_400))
      await everythingRuns()
      expect(published().time).toBe(100_400)
      expect(story.filter(step => step.startsWith('records') || step.startsWith('take'))).toEqual([])
    })

    test('says nothing that was there before the look, is a little late, or lay there uncommitted', async () => {
      const { flow, look, take, story } = await caughtUp()
      await look(100_000)
      await take(appended(2, 100_000 - CLOCKS_APART_MS))
      await take({ ...repsOf(3, 1), appended: 'transaction' })
      await take(appended(4, 1_000))
      flow.sawEnd(9, both(100_400))
      await take(appended(5, 1_000))
      expect(story.filter(step => step.startsWith('records'))).toEqual([])
    })
  })
})

describe('pressure', () => {
  const half = PARTITION_BYTES_IN_FLIGHT / 2

  test('is full above what may be in flight, and gone at half of it', async () => {
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

  test('that never was full is never said to be gone', async () => {
    const { take, hold, writes, pressure } = startFlow()
    hold('writes')
    await take(heavyBatch(0, half + 1_000))
    await writes.at(0).letGo()
    expect(pressure).toEqual([])
  })
})

describe('settled', () => {
  test('is at once what has nothing to do', async () => {
    await startFlow().flow.settled()
  })

  test('resolves when everything taken is published', async () => {
    const { flow, take, hold, refreshes, writes, published } = startFlow()
    hold('writes', 'refreshes')
    let settledAt: number | undefined
    await take(repsOf(0, 1))
    await take(repsOf(1, 1))
    const settled = flow.settled().then(() => {
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
