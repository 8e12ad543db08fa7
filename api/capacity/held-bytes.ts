/** Memory behind buffers. A small part of a large buffer keeps the whole buffer in memory. */

/** Returns the bytes that this buffer keeps in memory. Small buffers share a pool of Node. */
export const heldBy = ({ buffer, length }: Buffer): number =>
  buffer.byteLength <= Buffer.poolSize ? length : buffer.byteLength

/** Frees an answer that grew in place and is not used any more, earlier than the garbage collector would. */
export const free = ({ buffer }: Buffer): void => {
  if (buffer instanceof ArrayBuffer && buffer.resizable) buffer.resize(0)
}

/** Returns the same bytes, copied if the buffer keeps more than twice as many in memory. */
export const compact = (bytes: Buffer): Buffer => (heldBy(bytes) > 2 * bytes.length ? Buffer.from(bytes) : bytes)
