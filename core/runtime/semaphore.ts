/**
 * A number of permits, with a short queue. In: a request for a permit. Out: a function that returns the permit;
 * undefined if there is none.
 * Promises: never gives out more permits than it has. A permit returns once, even if its function is called several
 *   times. The longest waiting is next. Nobody waits longer than `waitMax`, or after the signal aborts.
 */

import { abortRefusal, type Schedule } from './time-limits.ts'

export type Release = () => void
export type Semaphore = {
  /** Takes a permit now; undefined if none is free. */
  readonly tryAcquire: () => Release | undefined
  /** Takes a permit or waits; undefined if the queue is full or the wait too long. @throws Refusal on abort */
  readonly acquire: (signal: AbortSignal) => Promise<Release | undefined>
  readonly held: () => number
  readonly waiting: () => number
}
export type SemaphoreLimits = {
  readonly permits: number
  /** Maximum length of the queue. */
  readonly queue: number
  /** Maximum wait in milliseconds. */
  readonly waitMax: number
}

/** Creates one semaphore. @param later timers for the longest wait */
export const createSemaphore = ({ permits, queue, waitMax }: SemaphoreLimits, later: Schedule): Semaphore => {
  let held = 0
  const line = new Set<(permit: Release) => void>()

  const permit = (): Release => {
    held++
    let given = false
    return () => {
      if (given) return
      given = true
      held--
      const [next] = line
      if (next) next(permit())
    }
  }
  const tryAcquire = (): Release | undefined => (held < permits && line.size === 0 ? permit() : undefined)

  const wait = (signal: AbortSignal): Promise<Release | undefined> =>
    new Promise((resolve, reject) => {
      const leave = (): void => {
        line.delete(take)
        signal.removeEventListener('abort', end)
        cancel()
      }
      const take = (given: Release): void => {
        leave()
        resolve(given)
      }
      const end = (): void => {
        leave()
        reject(abortRefusal(signal))
      }
      const cancel = later(waitMax, () => {
        leave()
        resolve(undefined)
      })
      line.add(take)
      signal.addEventListener('abort', end)
    })

  return {
    tryAcquire,
    acquire: async signal => {
      if (signal.aborted) throw abortRefusal(signal)
      const now = tryAcquire()
      if (now || line.size >= queue) return now
      return wait(signal)
    },
    held: () => held,
    waiting: () => line.size,
  }
}

/** A semaphore for each name, kept only while in use: memory depends on permits and waiters, not on names. */
export type Semaphores = {
  readonly tryAcquire: (name: string) => Release | undefined
  readonly acquire: (name: string, signal: AbortSignal) => Promise<Release | undefined>
  /** Over all names. */
  readonly held: () => number
  readonly waiting: () => number
}

/** Creates a semaphore of the same limits for each name, when the name is first used. */
export const createSemaphores = (limits: SemaphoreLimits, later: Schedule): Semaphores => {
  const used = new Map<string, Semaphore>()
  const sum = (count: (one: Semaphore) => number): number =>
    [...used.values()].reduce((all, one) => all + count(one), 0)
  const of = (name: string): Semaphore => {
    const semaphore = used.get(name) ?? createSemaphore(limits, later)
    used.set(name, semaphore)
    return semaphore
  }
  const forget = (name: string): void => {
    const semaphore = used.get(name)
    if (semaphore && semaphore.held() + semaphore.waiting() === 0) used.delete(name)
  }
  const forgetting = (name: string, release: Release | undefined): Release | undefined =>
    release &&
    (() => {
      release()
      forget(name)
    })

  return {
    tryAcquire: name => forgetting(name, of(name).tryAcquire()),
    acquire: async (name, signal) => {
      try {
        return forgetting(name, await of(name).acquire(signal))
      } catch (error) {
        forget(name)
        throw error
      }
    },
    held: () => sum(one => one.held()),
    waiting: () => sum(one => one.waiting()),
  }
}

/** Returns semaphores whose permits also need a permit of `all`. Takes the permit of the name first. */
export const within = (all: Semaphore, each: Semaphores): Semaphores => {
  const releaseBoth = (one: Release, ofAll: Release) => () => {
    ofAll()
    one()
  }
  return {
    ...each,
    tryAcquire: name => {
      const one = each.tryAcquire(name)
      const ofAll = one && all.tryAcquire()
      if (one && ofAll) return releaseBoth(one, ofAll)
      one?.()
      return undefined
    },
    acquire: async (name, signal) => {
      const one = await each.acquire(name, signal)
      if (one === undefined) return undefined
      let ofAll: Release | undefined
      try {
        ofAll = await all.acquire(signal)
        return ofAll && releaseBoth(one, ofAll)
      } finally {
        if (ofAll === undefined) one()
      }
    },
  }
}
