import { describe, expect, test } from 'vitest'
import { PARTITION_BYTES_IN_FLIGHT } from '../../projector/limits.ts'
import { everythingRuns } from './held.ts'
import { heavyBatch, repsOf, startFlow } from './running-flow.ts'

describe('the time up to which everything is included', () => {
  test('is that of the look which saw an end that is now published', async () => {
    const { flow, take, published, story } = startFlow()
    flow.sawEnd(3, 100)
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
      flow.sawEnd(2, time)
      await everythingRuns()
      expect(published().time).toBe(time)
    }
  })

  test('is never that of a look which saw more than is published', async () => {
    const { flow, take, published, hold, writes } = startFlow()
    hold('writes')
    flow.sawEnd(0, 100)
    await take(repsOf(0, 2))
    flow.sawEnd(2, 200)
    flow.sawEnd(3, 300)
    await everythingRuns()
    expect(published().time).toBe(100)
    await writes.at(0).letGo()
    expect(published()).toMatchObject({ position: 2, time: 200 })
  })

  test('moves under a steady stream, though the position never reaches the present end', async () => {
    const { flow, take, published } = startFlow()
    const times: number[] = []
    for (let second = 1; second <= 5; second++) {
      flow.sawEnd(second * 10, second * 1_000)
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
      flow.sawEnd(end, time)
    await take(repsOf(0, 3))
    expect(published().time).toBe(100)
    await take(repsOf(3, 3))
    expect(published().time).toBe(300)
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
