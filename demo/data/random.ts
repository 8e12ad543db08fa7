/** Pseudo-random numbers: the same seed gives the same numbers on every machine. */

export type Random = {
  /** From 0 (included) to 1 (excluded). */
  readonly next: () => number
  /** A whole number, both ends included. */
  readonly integer: (lowest: number, highest: number) => number
  readonly chance: (probability: number) => boolean
  readonly pick: <Item>(items: readonly Item[]) => Item
  /** An id of a record: prefix, underscore, 20 letters or digits. */
  readonly id: (prefix: string) => string
}

const characters = [...'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz']

/** @param seed a whole number */
export const createRandom = (seed: number): Random => {
  // A counter that visits every 32-bit number once. Mixing its bits makes neighbours unrelated.
  let counter = scramble(seed + 1)
  const next = () => {
    counter = (counter + 0x9e3779b9) | 0
    return (scramble(counter) >>> 0) / 2 ** 32
  }
  const integer = (lowest: number, highest: number) => lowest + Math.floor(next() * (highest - lowest + 1))
  const pick = <Item>(items: readonly Item[]): Item => {
    const item = items[integer(0, items.length - 1)]
    if (item === undefined) throw new Error('there is nothing to pick from')
    return item
  }
  return {
    next,
    integer,
    chance: probability => next() < probability,
    pick,
    id: prefix => `${prefix}_${Array.from({ length: 20 }, () => pick(characters)).join('')}`,
  }
}

const scramble = (bits: number): number => {
  let mixed = Math.imul(bits ^ (bits >>> 16), 0x21f0aaad)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
  return mixed ^ (mixed >>> 15)
}
