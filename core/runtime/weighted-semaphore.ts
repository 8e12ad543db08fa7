/**
 * Limits concurrent work. Callers wait in order, for as long as it takes. It is separate from semaphore.ts, because
 * there a wait needs a signal and timers and may end without a permit, and here every caller must get its amount.
 */

/** Acquires an amount, at most the whole size. The returned function releases it. */
export type WeightedSemaphore = (amount: number) => Promise<() => void>

export const createWeightedSemaphore = (size: number): WeightedSemaphore => {
  let free = size
  const waiting: { readonly amount: number; readonly enter: () => void }[] = []
  const admit = (): void => {
    for (let [first] = waiting; first && first.amount <= free; [first] = waiting) {
      waiting.shift()
      free -= first.amount
      first.enter()
    }
  }
  return async wanted => {
    const amount = Math.min(wanted, size)
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.push({ amount, enter: resolve })
    admit()
    await promise
    let isHeld = true
    return () => {
      if (isHeld) free += amount
      isHeld = false
      admit()
    }
  }
}

/** Lets a number of tasks run at once. */
export const limitConcurrency = (max: number): (<Result>(task: () => Promise<Result>) => Promise<Result>) => {
  const acquire = createWeightedSemaphore(max)
  return async task => {
    const release = await acquire(1)
    try {
      return await task()
    } finally {
      release()
    }
  }
}

/** Shares a running call among its callers: all partitions are assigned at once, and all ask about the same topic. */
export const shared = <Result>(task: () => Promise<Result>): (() => Promise<Result>) => {
  let running: Promise<Result> | undefined
  return () => {
    running ??= task().finally(() => {
      running = undefined
    })
    return running
  }
}
