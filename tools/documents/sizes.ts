/**
 * Sizes of stored documents, to read as many at a time as fit into memory. Elasticsearch loads a document to return its
 * size (sizes are not indexed), but answers with few bytes.
 */

import { type DocumentAddress, multiGet } from '../../core/store/index.ts'
import { SCAN_BYTES, SIZES_AT_ONCE } from '../limits.ts'
import { type RetryContext, withRetries } from './read-retries.ts'

/** Returns the bytes of the documents' bodies, in the order asked; 0 for a missing one. */
export const sizesOf = async (
  docs: readonly Omit<DocumentAddress, '_source'>[],
  reading: RetryContext,
): Promise<number[]> => {
  const sizes: number[] = []
  while (sizes.length < docs.length) {
    const asked = docs.slice(sizes.length, sizes.length + SIZES_AT_ONCE)
    const found = await withRetries(reading, () =>
      multiGet<{ readonly body_bytes?: number }>(
        reading.send,
        asked.map(doc => ({ ...doc, _source: ['body_bytes'] })),
      ),
    )
    for (const document of found) sizes.push(Number(document.found ? (document._source.body_bytes ?? 0) : 0))
  }
  return sizes
}

/** Returns how many documents, starting at `from`, fit into one answer: at least one. */
export const countFitting = (sizes: readonly number[], from: number, max = SCAN_BYTES): number => {
  let [count, bytes] = [0, 0]
  for (const size of sizes.slice(from)) {
    bytes += size
    if (count > 0 && bytes > max) break
    count++
  }
  return count
}

/** Splits items into chunks of at most `size`, in order. */
export function* chunksOf<Item>(items: readonly Item[], size: number): Generator<readonly Item[]> {
  for (let from = 0; from < items.length; from += size) yield items.slice(from, from + size)
}

/** Splits items into portions that are read together, in order. */
export function* portionsOf<Item>(
  items: readonly Item[],
  sizes: readonly number[],
  max = SCAN_BYTES,
): Generator<readonly Item[]> {
  for (let from = 0, count = 0; from < items.length; from += count) {
    count = countFitting(sizes, from, max)
    yield items.slice(from, from + count)
  }
}
