/**
 * In: the id of a seal key. Out: the key, from a directory: `ID.key` has its 32 bytes, as they are or in base64;
 *   `ID.erased.json` is the receipt of its destruction.
 * Promises: the receipt counts more than a key file, which may be left of an erasure that was interrupted, or come from
 *   an old copy.
 * Can go wrong: the directory cannot be read → `unavailable`, neither file → `unknown`: never `destroyed`.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SEAL_KEY_BYTES } from '../../../schemas/sealed/sealed-text.ts'
import type { SealKey } from './key-store.ts'

/** Names of the files of a key. */
export const keyFileOf = (id: string): string => `${id}.key`
export const receiptFileOf = (id: string): string => `${id}.erased.json`

/** Reads the receipt again if there is no key: an erasure may have replaced the key by a receipt in between. */
export const readSealKey = async (directory: string, id: string): Promise<SealKey> => {
  const receipt = async () => read(join(directory, receiptFileOf(id)))
  const first = await receipt()
  if (first !== 'missing') return destroyed(first, id)
  const bytes = await read(join(directory, keyFileOf(id)))
  if (bytes === 'unreadable') return { state: 'unavailable' }
  if (bytes !== 'missing') return keyOf(bytes)
  const second = await receipt()
  return second === 'missing' ? { state: 'unknown' } : destroyed(second, id)
}

type Content = Buffer | 'missing' | 'unreadable'

const read = async (file: string): Promise<Content> => {
  try {
    return await readFile(file)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENOENT' ? 'missing' : 'unreadable'
  }
}

/** A receipt of another key, or an incomplete one, proves nothing. */
const destroyed = (receipt: Exclude<Content, 'missing'>, id: string): SealKey => {
  if (receipt === 'unreadable') return { state: 'unavailable' }
  try {
    const { key_id, erased_at }: { key_id?: unknown; erased_at?: unknown } = JSON.parse(receipt.toString())
    return { state: key_id === id && typeof erased_at === 'string' ? 'destroyed' : 'malformed' }
  } catch {
    return { state: 'malformed' }
  }
}

/** The 32 bytes as they are, or as base64 or base64url with or without a line end. */
const keyOf = (bytes: Buffer): SealKey => {
  if (bytes.length === SEAL_KEY_BYTES) return { state: 'here', key: bytes }
  const text = bytes.toString('latin1').trim()
  const key = /^[0-9A-Za-z+/_-]{43}=?$/.test(text) ? Buffer.from(text, 'base64') : bytes
  return key.length === SEAL_KEY_BYTES ? { state: 'here', key } : { state: 'malformed' }
}
