/**
 * Keeps each answer about a key (the key, or the reason why it is missing) for a short time.
 * Promises: sees a change within SEAL_KEY_AGE_MAX. A key leaves memory within twice that time. At most SEAL_KEYS_HELD
 *   keys are held. Requests that need the same key at the same time read it once. A key that is not held is read when
 *   the request has its turn. A turn that is refused is no answer about a key: nothing is held.
 */

import type { Schedule } from '../../runtime/index.ts'
import type { KeyTurn, ReadSealKey, SealKey } from './key-store.ts'
import { SEAL_KEY_AGE_MAX, SEAL_KEYS_HELD } from './limits.ts'

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

  const heldNow = (id: string): Promise<SealKey> | undefined => {
    const found = held.get(id)
    return found && elapsed() - found.readAt < SEAL_KEY_AGE_MAX ? found.key : undefined
  }

  const readAndHold = (id: string): Promise<SealKey> => {
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

  const readInTurn = async (id: string, turn: KeyTurn): Promise<SealKey> => {
    const endTurn = await turn()
    // Another request may have read the key meanwhile.
    const key = heldNow(id)
    if (key === undefined) return readAndHold(id).finally(endTurn)
    endTurn()
    return key
  }

  return (id, turn) => heldNow(id) ?? (turn ? readInTurn(id, turn) : readAndHold(id))
}
