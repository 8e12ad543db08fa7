/**
 * Makes the Kafka client read the headers of a record in one go.
 *
 * By itself it copies all headers read so far for each further one: 10,000 headers, which fit into 80 KB, take half a minute
 * in which nothing else runs, and as many as a record may hold take days. A single such record would end a partition. It
 * also looks up each name in an object that has `toString` and its like already, and then keeps those as header values.
 *
 * Knows one method of the client that is not part of its interface; the client's version is pinned, and a test reads
 * records through it.
 */
import { createRequire } from 'node:module'

type Header = { readonly key: string; readonly value: Buffer | null }
type Decoder = { readVarInt(): number; readVarIntArray(read: (decoder: Decoder) => Header): Header[] }

/** Must be called before the first batch is read; calling it again changes nothing. */
export const readHeadersAtOnce = (): void => {
  const { prototype } = createRequire(import.meta.url)('kafkajs/src/protocol/decoder') as { prototype: Decoder }
  // The client calls this for headers only, and then gathers them by their names with `reduce`.
  prototype.readVarIntArray = function (read) {
    const headers = Array.from({ length: Math.max(0, this.readVarInt()) }, () => read(this))
    return Object.assign(headers, { reduce: () => byName(headers) })
  }
}

/** As the client has them: a value by its name, or several in a list. */
const byName = (headers: readonly Header[]): Record<string, Header['value'] | Header['value'][]> => {
  const named: Record<string, Header['value'] | Header['value'][]> = Object.create(null)
  for (const { key, value } of headers) {
    const before = named[key]
    if (before === undefined) named[key] = value
    else if (Array.isArray(before)) before.push(value)
    else named[key] = [before, value]
  }
  return named
}
