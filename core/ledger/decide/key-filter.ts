/**
 * A Bloom filter of the keys decided so far. A partition projected from its first record has decided every document
 * that its decisions may see. So a key not seen has no document, and Elasticsearch need not be asked. A key that was
 * never added may count as seen. A key that was added always counts as seen. A full filter only answers "seen" more
 * often.
 */

/**
 * Bits of each layer, and the number of keys after which the next one begins: a few keys take 64 KiB and not 4 MiB. The
 * first layers stay nearly empty, so that they hardly add to the errors of the last one. The last layer takes all other
 * keys, and depends on the part of the full size that the filter may take. About three in a thousand unseen keys count
 * as seen with two million keys, and again with sixteen million in a layer of 32 MiB.
 */
const LAYERS = [
  { bits: 2 ** 19, keys: 8_000 },
  { bits: 2 ** 22, keys: 128_000 },
  { bits: 2 ** 25, keys: 2_000_000 },
]
const LAST_BITS_MAX = 2 ** 28
const LAST_BITS_MIN = 2 ** 25
/** All bits of a key lie in one CPU cache line of this many words: each further line would be a cache miss. */
const LINE_WORDS = 16
const HASHES = 4

export class KeyFilter {
  /** A layer is allocated with its first key: an empty partition takes no memory. The first one is the newest. */
  readonly #layers: Uint32Array[] = []
  /** Keys that the newest layer may still take. The last layer takes more. */
  #left = 0
  readonly #sizes: readonly { readonly bits: number; readonly keys: number }[]

  /** @param share the part of the full size that this filter may take, up to 1 */
  constructor(share = 1) {
    const bits = 2 ** Math.floor(Math.log2(LAST_BITS_MAX * share))
    this.#sizes = bits < LAST_BITS_MIN ? LAYERS : [...LAYERS, { bits, keys: Number.POSITIVE_INFINITY }]
  }

  add(key: string): void {
    const hash = hashOf(key)
    if (this.#hasSeen(hash)) return
    const words = this.#layerWithRoom()
    const line = lineOf(hash, words)
    const bits = bitsOf(hash)
    for (let at = 0; at < HASHES; at++) {
      const bit = bits >>> (at * 7)
      const word = line + ((bit >>> 5) & (LINE_WORDS - 1))
      words[word] = (words[word] ?? 0) | (1 << (bit & 31))
    }
    this.#left--
  }

  hasSeen(key: string): boolean {
    return this.#hasSeen(hashOf(key))
  }

  #hasSeen(hash: number): boolean {
    for (const words of this.#layers) if (holds(words, hash)) return true
    return false
  }

  #layerWithRoom(): Uint32Array {
    const next = this.#left === 0 ? this.#sizes[this.#layers.length] : undefined
    if (next !== undefined) {
      this.#layers.unshift(new Uint32Array(next.bits / 32))
      this.#left = next.keys
    }
    return this.#layers[0] as Uint32Array
  }
}

const holds = (words: Uint32Array, hash: number): boolean => {
  const line = lineOf(hash, words)
  const bits = bitsOf(hash)
  for (let at = 0; at < HASHES; at++) {
    const bit = bits >>> (at * 7)
    const word = line + ((bit >>> 5) & (LINE_WORDS - 1))
    if (((words[word] ?? 0) & (1 << (bit & 31))) === 0) return false
  }
  return true
}

/** FNV-1a. */
const hashOf = (key: string): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  return hash
}

/** The first word of a key's cache line. */
const lineOf = (hash: number, words: Uint32Array): number => (hash & (words.length / LINE_WORDS - 1)) * LINE_WORDS

/**
 * Returns the places of a key's bits in its line, as one number. Each place has nine bits and begins seven bits after
 * the one before. The number hardly depends on `lineOf`.
 */
const bitsOf = (hash: number): number => {
  const mixed = Math.imul(hash ^ (hash >>> 15), 0x9e3779b1)
  return mixed ^ (mixed >>> 13)
}
