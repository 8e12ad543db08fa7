/**
 * A Bloom filter of the keys decided so far. Of a partition that is projected from its first record on, everything that
 * exists was decided here: a key that the filter has not seen has no document, and Elasticsearch need not be asked.
 * "Seen" may be wrong, "not seen" never is; when it fills up it only answers "seen" more often.
 */

/** 4 MiB: of two million keys it takes about one in a thousand for seen that was not. */
const BITS = 2 ** 25
const HASHES = 4

export class KeyFilter {
  readonly #words = new Uint32Array(BITS / 32)

  add(key: string): void {
    for (const bit of bitsOf(key)) this.#words[bit >>> 5] = (this.#words[bit >>> 5] ?? 0) | (1 << (bit & 31))
  }

  hasSeen(key: string): boolean {
    return bitsOf(key).every(bit => ((this.#words[bit >>> 5] ?? 0) & (1 << (bit & 31))) !== 0)
  }
}

/** Two hashes of the text (FNV-1a and a multiplicative one), and from them as many as wanted. */
const bitsOf = (key: string): number[] => {
  let a = 0x811c9dc5
  let b = 0
  for (let i = 0; i < key.length; i++) {
    const unit = key.charCodeAt(i)
    a = Math.imul(a ^ unit, 0x01000193)
    b = Math.imul(b, 0x9e3779b1) + unit
  }
  // Odd, so that the steps reach every place.
  const step = b | 1
  return Array.from({ length: HASHES }, (_, place) => (a + Math.imul(place, step)) & (BITS - 1))
}
