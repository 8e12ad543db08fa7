/**
 * In: the id of a seal key. Out: the key, from a directory: `ID.key` has its 32 bytes, as they are or in base64;
 *   `ID.erased.json` is the receipt of its destruction.
 * Promises: sees a change of the directory within SEAL_KEY_AGE_MAX. The receipt counts more than a key file, which may
 *   be left of an erasure that was interrupted, or come from an old copy. A key leaves memory when its time is up.
 * Can go wrong: the directory cannot be read → `unavailable`, neither file → `unknown`: never `destroyed`.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SEAL_KEY_BYTES } from '../../schemas/sealed/sealed-text.ts'
import { SEAL_KEY_AGE_MAX, SEAL_KEYS_HELD } from '../limits.ts'
import type { Schedule } from '../time-limits.ts'
import type { ReadSealKey, SealKey } from './key-store.ts'

/** Names of the files of a key. */
export const keyFileOf = (id: string): string => `${id}.key`
export const receiptFileOf = (id: string): string => `${id}.erased.json`

/** Reads keys of a directory, and keeps each for a short time. @param now milliseconds of a monotonic clock */
export const createKeyDirectory = (directory: string, now: () => number, later: Schedule): ReadSealKey => {
  const held = new Map<string, { readonly readAt: number; readonly key: Promise<SealKey> }>()
  let isSweeping = false

  /** Drops what is too old; the oldest come first. */
  const sweep = (): void => {
    const oldest = now() - SEAL_KEY_AGE_MAX
    for (const [id, { readAt }] of held) {
      if (readAt > oldest) break
      held.delete(id)
    }
    isSweeping = held.size > 0
    if (isSweeping) later(SEAL_KEY_AGE_MAX, sweep)
  }

  return id => {
    const found = held.get(id)
    if (found && now() - found.readAt < SEAL_KEY_AGE_MAX) return found.key
    held.delete(id)
    const [first] = held.keys()
    if (held.size >= SEAL_KEYS_HELD && first !== undefined) held.delete(first)
    const key = readSealKey(directory, id)
    held.set(id, { readAt: now(), key })
    if (!isSweeping) {
      isSweeping = true
      later(SEAL_KEY_AGE_MAX, sweep)
    }
    return key
  }
}

/** Reads a key now. Looks for the receipt again if there is no key: it may have been destroyed in between. */
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

/** A receipt of another key, or half of one, proves nothing. */
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
