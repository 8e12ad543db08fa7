/** Memory behind buffers. A buffer that is a small part of a large one keeps all of it. */

/** Bytes that stay in memory as long as this buffer does. Small buffers share a pool of Node. */
export const heldBy = ({ buffer, length }: Buffer): number =>
  buffer.byteLength <= Buffer.poolSize ? length : buffer.byteLength

/** Frees an answer that grew in place and that nobody uses any more. The garbage collector would free it later. */
export const free = ({ buffer }: Buffer): void => {
  if (buffer instanceof ArrayBuffer && buffer.resizable) buffer.resize(0)
}

/** The same bytes, copied where they would keep more than twice as much. */
export const compact = (bytes: Buffer): Buffer => (heldBy(bytes) > 2 * bytes.length ? Buffer.from(bytes) : bytes)
