import { describe, expect, test } from 'vitest'
import { createWeightedSemaphore, limitConcurrency } from '../../../core/runtime/weighted-semaphore.ts'
import { everythingRuns, Held } from '../../projector/held.ts'

test('a limited number of tasks run at once; the others follow in order, even after a failure', async () => {
  const slots = limitConcurrency(2)
  const tasks = new Held<string, string>()
  const results = ['a', 'b', 'c', 'd', 'e'].map(name =>
    slots(() => tasks.call(name)).catch((error: unknown) => `${error}`),
  )
  const running = () => tasks.calls.map(({ argument }) => argument)
  await everythingRuns()
  expect(running()).toEqual(['a', 'b'])
  await tasks.at(1).letGo('B')
  expect(running()).toEqual(['a', 'c'])
  await tasks.at(0).fail('refused')
  expect(running()).toEqual(['c', 'd'])
  await tasks.at(0).letGo('C')
  await tasks.at(0).letGo('D')
  expect(running()).toEqual(['e'])
  await tasks.at(0).letGo('E')
  expect(await Promise.all(results)).toEqual(['refused', 'B', 'C', 'D', 'E'])

  const more = ['f', 'g', 'h'].map(name => slots(() => tasks.call(name)))
  await everythingRuns()
  expect(running()).toEqual(['f', 'g'])
  for (let left = more.length; left > 0; left--) await tasks.at(0).letGo('')
  await Promise.all(more)
})

test('a task that throws synchronously frees its place', async () => {
  const slots = limitConcurrency(1)
  const broken = (): Promise<never> => {
    throw new Error('at once')
  }
  await expect(slots(broken)).rejects.toThrow('at once')
  expect(await slots(async () => 'next')).toBe('next')
})

describe('a weighted semaphore', () => {
  const entering = (room: ReturnType<typeof createWeightedSemaphore>) => {
    const inside = new Map<string, () => void>()
    const enter = (name: string, amount: number) => void room(amount).then(leave => inside.set(name, leave))
    return { enter, inside, names: () => [...inside.keys()] }
  }

  test('gives room in order: a small task does not overtake a large one that waits', async () => {
    const { enter, inside, names } = entering(createWeightedSemaphore(10))
    for (const [name, amount] of Object.entries({ a: 6, b: 6, c: 1 })) enter(name, amount)
    await everythingRuns()
    expect(names()).toEqual(['a'])
    inside.get('a')?.()
    await everythingRuns()
    expect(names()).toEqual(['a', 'b', 'c'])
  })

  test('gives all its room to a task that is larger', async () => {
    const { enter, inside, names } = entering(createWeightedSemaphore(10))
    enter('a', 25)
    enter('b', 1)
    await everythingRuns()
    expect(names()).toEqual(['a'])
    inside.get('a')?.()
    await everythingRuns()
    expect(names()).toEqual(['a', 'b'])
  })

  test('takes room back only once', async () => {
    const { enter, inside, names } = entering(createWeightedSemaphore(1))
    for (const name of ['a', 'b', 'c']) enter(name, 1)
    await everythingRuns()
    inside.get('a')?.()
    inside.get('a')?.()
    await everythingRuns()
    expect(names()).toEqual(['a', 'b'])
  })
})
