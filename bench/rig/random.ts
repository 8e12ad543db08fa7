/** Seeded random numbers: the same seed gives the same data on every machine. */
import { createHash } from 'node:crypto'

export type DatasetRandom = {
  /** A whole number from 0 (included) to `limit` (excluded). */
  readonly below: (limit: number) => number
  readonly chance: (probability: number) => boolean
  /** Characters of an id, without its prefix. */
  readonly id: (length?: number) => string
  /** Shuffles in place. */
  readonly shuffle: (items: number[]) => number[]
}

const characters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Creates a source of numbers. Each seed has its own. */
export const createDatasetRandom = (seed: string): DatasetRandom => {
  let state = createHash('sha256').update(seed).digest().readInt32LE(0)

  /** Mulberry32: a number from 0 (included) to 1 (excluded). */
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (limit: number): number => Math.floor(next() * limit)

  return {
    below,
    chance: probability => next() < probability,
    id: (length = 22) => {
      let id = ''
      while (id.length < length) id += characters[below(characters.length)]
      return id
    },
    shuffle: items => {
      for (let last = items.length - 1; last > 0; last--) {
        const other = below(last + 1)
        const item = items[last]
        items[last] = items[other] ?? 0
        items[other] = item ?? 0
      }
      return items
    },
  }
}
