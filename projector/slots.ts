/** Lets a number of tasks run at once; the others wait their turn, in order. */
export const createSlots = (places: number): (<Result>(task: () => Promise<Result>) => Promise<Result>) => {
  let free = places
  const waiting: (() => void)[] = []
  return async task => {
    if (free > 0) free--
    else await new Promise<void>(resolve => waiting.push(resolve))
    try {
      return await task()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else free++
    }
  }
}
