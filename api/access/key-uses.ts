/**
 * The day on which each key was last used, in this process since its start. In: the keys of requests. Out: a list, for
 * the admin port.
 * Promises: memory is bounded: the keys that were used longest ago are forgotten first. The first use of a key
 *   adds an entry. Each later use only sets a number.
 */
import { LRUCache } from 'lru-cache'
import { KEYS_REMEMBERED, type KeyHolder } from '../../core/reading/index.ts'
import { lruOptions } from '../../core/runtime/index.ts'

export type KeyUse = { readonly organization_hash: string; readonly key_id: string; readonly last_used_on: string }

export type KeyUses = {
  readonly use: (key: KeyHolder) => void
  /** The latest use first. */
  readonly list: () => KeyUse[]
}

const DAY = 86_400_000

/** @param time milliseconds since 1970 */
export const createKeyUses = (time: () => number, max = KEYS_REMEMBERED): KeyUses => {
  const uses = new LRUCache<string, { readonly key: KeyHolder; day: number }>(lruOptions(max))
  return {
    use: key => {
      const name = `${key.org}:${key.id}`
      const day = Math.floor(time() / DAY)
      const known = uses.get(name)
      if (known === undefined) uses.set(name, { key, day })
      else known.day = day
    },
    list: () =>
      [...uses.values()].map(({ key, day }) => ({
        organization_hash: key.orgHash,
        key_id: key.id,
        last_used_on: new Date(day * DAY).toISOString().slice(0, 10),
      })),
  }
}
