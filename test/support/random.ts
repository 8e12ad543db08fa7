/** Repeatable random numbers. Tests print the seed; FLOW_SEED sets it. */

export type Random = {
  /** Returns a number from 0 to below 1. */
  readonly next: () => number
  /** Returns an integer from 0 to below `end`. */
  readonly below: (end: number) => number
  readonly pick: <Item>(items: readonly Item[]) => Item
  readonly chance: (probability: number) => boolean
}

export const seedOfRun = (): number => Number(process.env.FLOW_SEED ?? Date.now() % 1_000_000_000)

/** Mulberry32. */
export const createRandom = (seed: number): Random => {
  let state = seed
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (end: number): number => Math.floor(next() * end)
  return {
    next,
    below,
    pick: items => {
      const item = items[below(items.length)]
      if (item === undefined) throw new Error('there is nothing to pick from')
      return item
    },
    chance: probability => next() < probability,
  }
}
