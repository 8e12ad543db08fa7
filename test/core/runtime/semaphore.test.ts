import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createSemaphore, createSemaphores, type Release, within } from '../../../core/runtime/semaphore.ts'
import { abortReason } from '../../../core/runtime/time-limits.ts'

const never = new AbortController().signal
const turn = () => new Promise(resolve => setImmediate(resolve))

/** Timers that run only when the test says so. */
const rig = () => {
  const timers = new Set<() => void>()
  const later = (_: number, run: () => void) => {
    timers.add(run)
    return () => void timers.delete(run)
  }
  const ring = () => {
    for (const run of [...timers]) run()
  }
  return { later, ring, timers }
}
const limits = { permits: 2, queue: 2, waitMax: 100 }

describe('a semaphore', () => {
  test('gives out its permits, lets a few requests wait in order, and refuses the next at once', async () => {
    const { later } = rig()
    const { acquire, tryAcquire, held, waiting } = createSemaphore(limits, later)
    const [first, second] = [await acquire(never), await acquire(never)]
    const order: string[] = []
    const third = acquire(never).then(permit => order.push('third') && permit)
    const fourth = acquire(never).then(permit => order.push('fourth') && permit)
    expect([await acquire(never), tryAcquire(), held(), waiting()]).toEqual([undefined, undefined, 2, 2])
    second?.()
    first?.()
    await Promise.all([third, fourth])
    expect([order, held(), waiting()]).toEqual([['third', 'fourth'], 2, 0])
  })

  test('takes a permit back only once', async () => {
    const { acquire, held } = createSemaphore(limits, rig().later)
    const release = await acquire(never)
    await acquire(never)
    release?.()
    release?.()
    expect(held()).toBe(1)
  })

  test('ends a wait at its time limit, or when its request ends', async () => {
    const { later, ring, timers } = rig()
    const { acquire, tryAcquire, waiting } = createSemaphore({ permits: 1, queue: 2, waitMax: 100 }, later)
    const release = await acquire(never)
    const gone = new AbortController()
    const waits = [acquire(never), acquire(gone.signal)]
    gone.abort(abortReason('client_gone'))
    await expect(waits[1]).rejects.toMatchObject({ code: 'unavailable', reason: 'client_gone' })
    ring()
    expect(await waits[0]).toBeUndefined()
    expect([waiting(), timers.size]).toEqual([0, 0])
    await expect(acquire(gone.signal)).rejects.toMatchObject({ reason: 'client_gone' })
    release?.()
    expect(tryAcquire()).toBeTypeOf('function')
  })

  test('has all its permits back after any order of requests, releases, departures and timeouts', async () => {
    const step = fc.constantFrom('ask', 'release', 'leave', 'ring')
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async steps => {
        const { later, ring, timers } = rig()
        const { acquire, held, waiting } = createSemaphore(limits, later)
        const permits: Release[] = []
        const asking: AbortController[] = []
        for (const step of steps) {
          if (step === 'ask') {
            const asked = new AbortController()
            asking.push(asked)
            acquire(asked.signal).then(
              permit => permit && permits.push(permit),
              () => undefined,
            )
          } else if (step === 'release') permits.shift()?.()
          else if (step === 'leave') asking.shift()?.abort(abortReason('client_gone'))
          else ring()
          await turn()
          expect(held()).toBeLessThanOrEqual(limits.permits)
          expect(waiting()).toBeLessThanOrEqual(limits.queue)
          expect(held()).toBe(permits.length)
        }
        while (permits.length > 0) {
          permits.shift()?.()
          await turn()
        }
        expect([held(), waiting(), timers.size]).toEqual([0, 0, 0])
      }),
    )
  })
})

describe('semaphores by name', () => {
  test('have permits of their own, and are counted together', async () => {
    const { acquire, tryAcquire, held, waiting } = createSemaphores(limits, rig().later)
    const [a1, a2] = [await acquire('a', never), tryAcquire('a')]
    expect([tryAcquire('a'), held()]).toEqual([undefined, 2])
    const b = tryAcquire('b')
    const third = acquire('a', never)
    expect([b === undefined, held(), waiting()]).toEqual([false, 3, 1])
    a1?.()
    const a3 = await third
    for (const release of [a1, a2, a3, b]) release?.()
    expect([held(), waiting()]).toEqual([0, 0])
  })
})

describe('permits by name within a limit for all names', () => {
  const given = () => {
    const { later, ring } = rig()
    const all = createSemaphore({ permits: 1, queue: 2, waitMax: 100 }, later)
    const each = createSemaphores({ permits: 1, queue: 2, waitMax: 100 }, later)
    return { all, ring, ...within(all, each) }
  }

  test('need a permit of both semaphores, and give both back', async () => {
    const { all, acquire, tryAcquire, held } = given()
    const release = tryAcquire('a')
    expect([all.held(), held(), tryAcquire('b')]).toEqual([1, 1, undefined])
    expect(held()).toBe(1)
    const waits = acquire('b', never)
    await turn()
    expect([all.waiting(), held()]).toEqual([1, 2])
    release?.()
    const second = await waits
    expect([all.held(), held()]).toEqual([1, 1])
    second?.()
    expect([all.held(), held()]).toEqual([0, 0])
  })

  test('go to the names in turn, however many requests of one name wait', async () => {
    const { acquire } = given()
    const order: string[] = []
    const take = (name: string, text: string) =>
      acquire(name, never).then(permit => {
        order.push(text)
        return permit
      })
    const first = await take('a', 'a1')
    const waits = [take('a', 'a2'), take('a', 'a3'), take('b', 'b1')]
    await turn()
    first?.()
    ;(await waits[2])?.()
    ;(await waits[0])?.()
    ;(await waits[1])?.()
    expect(order).toEqual(['a1', 'b1', 'a2', 'a3'])
  })

  test('are not kept if the wait for the other permit times out or its request ends', async () => {
    const { all, ring, acquire, tryAcquire, held } = given()
    const release = tryAcquire('a')
    const gone = new AbortController()
    const waits = [acquire('b', never), acquire('c', gone.signal)]
    await turn()
    gone.abort(abortReason('client_gone'))
    await expect(waits[1]).rejects.toMatchObject({ reason: 'client_gone' })
    ring()
    expect(await waits[0]).toBeUndefined()
    expect([all.held(), all.waiting(), held()]).toEqual([1, 0, 1])
    release?.()
    expect(held()).toBe(0)
  })
})
