/**
 * A Bloom filter of the keys decided so far. A partition projected from its first record has decided every document
 * that exists. So a key not seen has no document, and Elasticsearch need not be asked. "Seen" may be wrong, "not seen"
 * never is. A full filter only answers "seen" more often.
 */

/** 4 MiB. With two million keys, about three in a thousand unseen keys count as seen. */
const BITS = 2 ** 25
const WORDS = BITS / 32
/** All bits of a key lie in one CPU cache line of this many words: each further line would be a cache miss. */
const LINE_WORDS = 16
const HASHES = 4

export class KeyFilter {
  /** Allocated with the first key: an empty partition takes no memory. */
  #words: Uint32Array | undefined

  add(key: string): void {
    this.#words ??= new Uint32Array(WORDS)
    const hash = hashOf(key)
    const line = lineOf(hash)
    const bits = bitsOf(hash)
    for (let at = 0; at < HASHES; at++) {
      const bit = bits >>> (at * 7)
      const word = line + ((bit >>> 5) & (LINE_WORDS - 1))
      this.#words[word] = (this.#words[word] ?? 0) | (1 << (bit & 31))
    }
  }

  hasSeen(key: string): boolean {
    if (this.#words === undefined) return false
    const hash = hashOf(key)
    const line = lineOf(hash)
    const bits = bitsOf(hash)
    for (let at = 0; at < HASHES; at++) {
      const bit = bits >>> (at * 7)
      const word = line + ((bit >>> 5) & (LINE_WORDS - 1))
      if (((this.#words[word] ?? 0) & (1 << (bit & 31))) === 0) return false
    }
    return true
  }
}

/** FNV-1a. */
const hashOf = (key: string): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  return hash
}

/** The first word of a key's cache line. */
const lineOf = (hash: number): number => (hash & (WORDS / LINE_WORDS - 1)) * LINE_WORDS

/** The bits of a key's bits in its line: nine bits each, seven apart, from a hash nearly independent of `lineOf`. */
const bitsOf = (hash: number): number => {
  const mixed = Math.imul(hash ^ (hash >>> 15), 0x9e3779b1)
  return mixed ^ (mixed >>> 13)
}
