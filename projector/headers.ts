/**
 * Makes the Kafka client read the headers of a record in one go.
 *
 * By itself it copies all headers read so far for each further one: 10,000 headers, which fit into 80 KB, take half a minute
 * in which nothing else runs, and as many as a record may hold take days. A single such record would end a partition. It
 * also looks up each name in an object that has `toString` and its like already, and then keeps those as header values. Here
 * they stay what they are in the record: a list, in its order.
 *
 * Knows one method of the client that is not part of its interface; the client's version is pinned, and a test reads
 * records through it.
 */
import { createRequire } from 'node:module'
import type { RawRecord } from './decode.ts'

type Header = { readonly key: string | null; readonly value: Buffer | null }
type Decoder = { readVarInt(): number; readVarIntArray(read: (decoder: Decoder) => Header): Readable }

/** What the client takes for an array, which it makes into an object with `reduce`: that is what a message has for headers. */
type Readable = { readonly reduce: () => RawRecord['headers'] }

/** Must be called before the first batch is read; calling it again changes nothing. */
export const readHeadersAtOnce = (): void => {
  const { prototype } = createRequire(import.meta.url)('kafkajs/src/protocol/decoder') as { prototype: Decoder }
  // The client calls this for headers only.
  prototype.readVarIntArray = function (read) {
    const headers: [string, Buffer | null][] = []
    for (let count = this.readVarInt(); count > 0; count--) {
      const { key, value } = read(this)
      // A name of no length at all is read as null.
      headers.push([key ?? '', value])
    }
    return { reduce: () => headers }
  }
}
