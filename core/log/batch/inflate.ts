/** Runs bytes through a stream of zlib, in parts: memory does not grow with what they decompress to. */
import { type Duplex, pipeline, Readable } from 'node:stream'
import { Undecodable } from './record-batch.ts'

/**
 * Yields the output. Ends the stream in any case.
 * @param parts given to the stream one after the other: it ignores what follows the end of a frame in the same part
 * @throws Undecodable
 */
export async function* inflate(stream: Duplex, parts: Iterable<Buffer>): AsyncGenerator<Buffer> {
  // The loop below gets the error.
  pipeline(Readable.from(parts), stream, () => undefined)
  try {
    for await (const chunk of stream) yield chunk
  } catch (error) {
    if (isOfMemory(error)) throw error
    throw new Undecodable('not_decompressed')
  } finally {
    stream.destroy()
  }
}

/** Without memory nothing is known of the bytes: the batch must not be parked. */
const isOfMemory = (error: unknown): boolean =>
  error instanceof RangeError || (error instanceof Error && 'code' in error && /MEM/i.test(String(error.code)))
