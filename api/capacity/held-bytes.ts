/** Memory behind buffers. A small part of a large buffer keeps the whole buffer in memory. */

/** Returns the bytes that this buffer keeps in memory. Small buffers share a pool of Node. */
export const heldBy = ({ buffer, length }: Buffer): number =>
  buffer.byteLength <= Buffer.poolSize ? length : buffer.byteLength

/** Frees an answer that grew in place and is not used any more, earlier than the garbage collector would. */
export const free = ({ buffer }: Buffer): void => {
  if (buffer instanceof ArrayBuffer && buffer.resizable) buffer.resize(0)
}

/**
 * Returns the same bytes, with little unused memory behind them. Call it for bytes whose buffer nothing else uses: a
 * buffer that grew in place shrinks. Bytes are copied if another buffer keeps more than twice as many in memory.
 */
export const compact = (bytes: Buffer): Buffer => {
  const { buffer, byteOffset, length } = bytes
  if (buffer instanceof ArrayBuffer && buffer.resizable) buffer.resize(byteOffset + length)
  return heldBy(bytes) > 2 * length ? Buffer.from(bytes) : bytes
}
