/**
 * Sizes of stored documents. They are not indexed: Elasticsearch loads a document to tell its size, but the answer has
 * a few bytes only. With the sizes a command reads as many documents at a time as fit into memory.
 */
import { type DocumentAddress, multiGet } from '../../projector/elasticsearch/client.ts'
import { SCAN_BYTES, SIZES_AT_ONCE } from '../limits.ts'
import { patiently, type Reading } from './patiently.ts'

/** Bytes of the bodies of documents, in the order asked; 0 for one that is not there. */
export const sizesOf = async (
  docs: readonly Omit<DocumentAddress, '_source'>[],
  reading: Reading,
): Promise<number[]> => {
  const sizes: number[] = []
  while (sizes.length < docs.length) {
    const asked = docs.slice(sizes.length, sizes.length + SIZES_AT_ONCE)
    const found = await patiently(reading, () =>
      multiGet(
        reading.send,
        asked.map(place => ({ ...place, _source: ['body_bytes'] })),
      ),
    )
    for (const { _source } of found)
      sizes.push(Number((_source as { body_bytes?: number } | undefined)?.body_bytes ?? 0))
  }
  return sizes
}

/** How many documents, from this one on, one answer may hold: at least one. */
export const countFitting = (sizes: readonly number[], from: number, most = SCAN_BYTES): number => {
  let [count, bytes] = [0, 0]
  for (const size of sizes.slice(from)) {
    bytes += size
    if (count > 0 && bytes > most) break
    count++
  }
  return count
}

/** Items that are read together, in order. */
export function* portionsOf<Item>(
  items: readonly Item[],
  sizes: readonly number[],
  most = SCAN_BYTES,
): Generator<readonly Item[]> {
  for (let from = 0, count = 0; from < items.length; from += count) {
    count = countFitting(sizes, from, most)
    yield items.slice(from, from + count)
  }
}
