/**
 * Keeps each answer about a key (the key, or the reason why it is missing) for a short time.
 * Promises: sees a change within SEAL_KEY_AGE_MAX. A key leaves memory within twice that time. At most SEAL_KEYS_HELD
 *   keys are held. Requests that need the same key at the same time read it once.
 */
import { SEAL_KEY_AGE_MAX, SEAL_KEYS_HELD } from '../limits.ts'
import type { Schedule } from '../time-limits.ts'
import type { ReadSealKey, SealKey } from './key-store.ts'

/** @param elapsed milliseconds of a monotonic clock */
export const holdKeys = (read: ReadSealKey, elapsed: () => number, later: Schedule): ReadSealKey => {
  const held = new Map<string, { readonly readAt: number; readonly key: Promise<SealKey> }>()
  let isSweeping = false

  /** Drops what is too old; the oldest come first. */
  const sweep = (): void => {
    const oldest = elapsed() - SEAL_KEY_AGE_MAX
    for (const [id, { readAt }] of held) {
      if (readAt > oldest) break
      held.delete(id)
    }
    isSweeping = held.size > 0
    if (isSweeping) later(SEAL_KEY_AGE_MAX, sweep)
  }

  return id => {
    const found = held.get(id)
    if (found && elapsed() - found.readAt < SEAL_KEY_AGE_MAX) return found.key
    held.delete(id)
    const [first] = held.keys()
    if (held.size >= SEAL_KEYS_HELD && first !== undefined) held.delete(first)
    const key = read(id)
    held.set(id, { readAt: elapsed(), key })
    if (!isSweeping) {
      isSweeping = true
      later(SEAL_KEY_AGE_MAX, sweep)
    }
    return key
  }
}
