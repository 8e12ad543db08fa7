/** Memory behind buffers. A small part of a large buffer keeps the whole buffer in memory. */
import { SLICE } from '../limits.ts'

/** Returns the bytes that this buffer keeps in memory. Small buffers share a pool of Node. */
export const heldBy = ({ buffer, length }: Buffer): number =>
  buffer.byteLength <= Buffer.poolSize ? length : buffer.byteLength

/** Returns a buffer of this length, with any content. A long one can be freed. */
export const allocate = (length: number): Buffer =>
  length > SLICE.bytes ? Buffer.from(new ArrayBuffer(length, { maxByteLength: length })) : Buffer.allocUnsafe(length)

/** Whether `free` gives memory back: only for a buffer that grew in place, and for a long one of `allocate`. */
export const isFreeable = ({ buffer }: Buffer): boolean => buffer instanceof ArrayBuffer && buffer.resizable

/**
 * Frees a buffer earlier than the garbage collector would.
 * HAZARD: nothing may use its bytes, or a slice of them, any more. They are gone without an error.
 */
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
